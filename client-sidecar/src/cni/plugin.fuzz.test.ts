import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { FUZZ_TIMEOUT_MS, fuzzBytes, PROCESS_CASES } from "@egress-nat/test/fuzz/bytes";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CompiledPlugin } from "../testing/compiled-plugin.ts";
import { locationsIn } from "../testing/locations.ts";

const CONFIGURATION = JSON.stringify({
  cniVersion: "1.0.0",
  name: "pods",
  type: "egress-nat",
  prevResult: { cniVersion: "1.0.0", ips: [{ address: "10.244.0.5/24" }, { address: "fd00:244::5/64" }] },
  runtimeConfig: { "io.kubernetes.cri.pod-annotations": { "egress.coil.cybozu.com/internet": "nat" } },
});

const REPLIES = [
  { ok: true },
  { ok: false, code: 11, message: "Egress internet/nat does not exist", details: "apply it" },
].map((reply) => Buffer.from(`${JSON.stringify(reply)}\n`));

let plugin: CompiledPlugin;
let folder: string;

beforeAll(async () => {
  plugin = await CompiledPlugin.compile();
  folder = mkdtempSync(join(tmpdir(), "egress-nat-fuzz-"));
  mkdirSync(locationsIn(folder).runDirectory);
});

afterAll(() => {
  plugin.remove();
  rmSync(folder, { recursive: true });
});

/** Whatever it was given, the plugin ends by itself, with a JSON object on stdout and nothing on stderr. */
async function expectAnswer(stdin: string | Uint8Array): Promise<void> {
  const [file, ...args] = plugin.command;
  const env = {
    FOLDER: folder,
    CNI_COMMAND: "ADD",
    CNI_CONTAINERID: "c0ffee",
    CNI_NETNS: "/run/netns/cni-1",
    CNI_IFNAME: "eth0",
    CNI_ARGS: "K8S_POD_NAMESPACE=apps;K8S_POD_NAME=web",
  };
  const child = spawn(file, args, { env });
  child.stdin.end(stdin);
  const [[code, signal], stdout, stderr] = await Promise.all([
    once(child, "close"),
    text(child.stdout),
    text(child.stderr),
  ]);
  expect([stderr, signal]).toEqual(["", null]);
  const answer = JSON.parse(stdout);
  if (code !== 0) expect(answer).toMatchObject({ code: expect.any(Number), msg: expect.any(String) });
}

test("any bytes on stdin get an answer", { timeout: FUZZ_TIMEOUT_MS }, () =>
  fuzzBytes([Buffer.from(CONFIGURATION)], expectAnswer, PROCESS_CASES),
);

test("any answer of an agent is one for the container runtime", { timeout: FUZZ_TIMEOUT_MS }, async () => {
  let reply: Uint8Array = Buffer.of();
  const agent = createServer((socket) => {
    socket.on("error", () => undefined).on("data", () => socket.end(reply));
  });
  await new Promise<void>((resolve) =>
    agent.listen(join(locationsIn(folder).runDirectory, "agent.sock"), resolve),
  );
  try {
    await fuzzBytes(
      REPLIES,
      (bytes) => {
        reply = bytes;
        return expectAnswer(CONFIGURATION);
      },
      PROCESS_CASES,
    );
  } finally {
    await new Promise((resolve) => agent.close(resolve));
  }
});
