import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { EgressView } from "../gateways/view.ts";
import { NodeState } from "../records/node-state.ts";
import { recordId } from "../records/record-id.ts";
import type { Attachment } from "../records/schema.ts";
import { clientRecord } from "../testing/client-record.ts";
import { FakeNetworks } from "../testing/fake-networks.ts";
import { runInBackground } from "../testing/in-background.ts";
import { locationsIn } from "../testing/locations.ts";
import { ClientRegistry } from "./registry.ts";
import { Steerer } from "./steerer.ts";

const logger = createLogger({ name: "test", level: "silent" });
const records = Array.from({ length: 9 }, (_, index) =>
  clientRecord({ containerId: `sandbox-${index}`, netns: `/run/netns/pod-${index}`, addresses: [] }),
);

let folder: string;
let networks: FakeNetworks;
let registry: ClientRegistry;
let steerer: Steerer;
/** What happened, by network namespace. */
let log: string[];
let stop: () => Promise<void>;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "egress-nat-steerer-"));
  log = [];
  networks = new FakeNetworks();
  registry = new ClientRegistry(new NodeState(locationsIn(folder), logger));
  for (const record of records) registry.add(record);
  const steer = async (netns: string) => {
    log.push(`steered ${netns}`);
    if (netns === records[2]?.netns) throw new Error("no such map");
  };
  const view = { egress: () => undefined, gateways: () => [], clusterRanges: [] };
  steerer = new Steerer({
    ...{ registry, logger, networks: { ...networks, steer }, view: view as unknown as EgressView },
    reapplier: {
      reapply: (clients: readonly Attachment[]) => {
        for (const { containerId } of clients) log.push(`looked at ${containerId}`);
      },
    },
  });
  stop = runInBackground(steerer);
});

afterEach(async () => {
  await stop();
  rmSync(folder, { recursive: true });
});

test("all clients are steered before any is looked at, and one that cannot be is looked at as well", async () => {
  steerer.steer(records);
  await vi.waitFor(() => expect(log).toHaveLength(2 * records.length));
  expect(log.slice(0, records.length).toSorted()).toEqual(records.map(({ netns }) => `steered ${netns}`));
  expect(log.slice(records.length).toSorted()).toEqual(
    records.map(({ containerId }) => `looked at ${containerId}`),
  );
});

test("only the owner of a network namespace says where its flows go", async () => {
  const later = clientRecord({
    ...{ containerId: "sandbox-later", netns: records[0]?.netns ?? "", addresses: [] },
    addedAt: "2026-12-01T00:00:00.000Z",
  });
  registry.add(later);
  steerer.steer(records.slice(0, 1));
  await vi.waitFor(() => expect(log).toEqual(["looked at sandbox-0"]));
  steerer.steer([later]);
  await vi.waitFor(() => expect(log.slice(1)).toEqual([`steered ${later.netns}`, "looked at sandbox-later"]));
});

test("one that is gone by then is left alone", async () => {
  const [gone] = records;
  if (gone !== undefined) registry.bury(recordId(gone));
  steerer.steer(records.slice(0, 2));
  await vi.waitFor(() => expect(log.at(-1)).toBe("looked at sandbox-1"));
  expect(log[0]).toBe("steered /run/netns/pod-1");
});
