import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Suspicion } from "./gateway.ts";
import { GatewayWatch } from "./watch.ts";

const EVERYTHING = { elements: true };
const ALL_BUT_ELEMENTS = { elements: false };

let folder: string;
let stop: AbortController;
let watching: Promise<void>;
let own: { begun: number; succeeded: number };
let suspicions: Suspicion[];
let warnings: unknown[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gateway-watch-"));
  await Promise.all([monitor("nft"), monitor("ip")]);
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
  own = { begun: 3, succeeded: 3 };
  suspicions = [];
  warnings = [];
  stop = new AbortController();
  const watch = new GatewayWatch({
    port: 5555,
    ownTransactions: () => own,
    onChange: (where) => suspicions.push(where),
    logger: { debug: () => undefined, info: () => undefined, warn: (what) => warnings.push(what) },
  });
  watching = watch.run(stop.signal);
  await suspected(EVERYTHING); // whatever happened before the monitors listened
});

afterEach(async () => {
  stop.abort();
  await watching;
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

test("a transaction more than the gateway has begun makes all elements suspect, its own do not", async () => {
  own = { begun: 4, succeeded: 3 };
  await tells("nft", "# new generation 5 by process 1 (nft)");
  own = { begun: 4, succeeded: 4 };
  await tells("ip", "3: eth0: <UP> mtu 1300");
  await suspected(ALL_BUT_ELEMENTS);
  await tells("nft", "# new generation 6 by process 1 (nft)");
  await suspected(EVERYTHING);
});

test("another's transaction does not count in the place of one that has failed, or was not heard of", async () => {
  own = { begun: 4, succeeded: 3 };
  await tells("nft", "# new generation 5 by process 1 (nft)");
  own = { begun: 3, succeeded: 3 };
  await suspected(EVERYTHING);
  own = { begun: 4, succeeded: 4 };
  await suspected(EVERYTHING);
});

test("a monitor that has lost notifications is exchanged, and all elements are suspect then", async () => {
  await writeFile(join(folder, "nft.lines"), "");
  await tells("nft", "# ERROR: We lost some netlink events!");
  await writeFile(join(folder, "nft.lines"), "");
  await suspected(EVERYTHING);
  expect(warnings).toEqual([]);
});

test("a monitor that ends is started again, and what it may have missed is looked for", async () => {
  await monitor("nft", "exit 1");
  await tells("nft", "# ERROR: We lost some netlink events!");
  await vi.waitFor(() => expect(warnings).not.toEqual([]));
  await monitor("nft");
  await suspected(EVERYTHING);
});

/** Waits for a suspicion; the monitor of `ip` may be greeted at any time. */
async function suspected(where: Suspicion): Promise<void> {
  await vi.waitFor(() => expect(suspicions).toContainEqual(where));
  if (!where.elements) expect(suspicions).not.toContainEqual(EVERYTHING);
  suspicions = [];
}

function tells(file: string, line: string): Promise<void> {
  return appendFile(join(folder, `${file}.lines`), `${line}\n`);
}

/** Puts a program in the place of a monitor that joins a group of netlink as that does, and prints what it is told. */
async function monitor(file: string, first = ""): Promise<void> {
  await writeFile(join(folder, `${file}.lines`), "");
  const listen = `$^F = 9; socket(S, 16, 3, 0); bind(S, pack("SSLL", 16, 0, 0, 1)); exec @ARGV`;
  const script = `#!/bin/sh\n${first}\nexec perl -e '${listen}' tail -n +1 -f ${folder}/${file}.lines\n`;
  await writeFile(join(folder, file), script, { mode: 0o755 });
}
