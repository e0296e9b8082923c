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
import { runInBackground } from "../testing/in-background.ts";
import { locationsIn } from "../testing/locations.ts";
import { ClientRegistry } from "./registry.ts";
import { Steerer } from "./steerer.ts";

const logger = createLogger({ name: "test", level: "silent" });
const records = Array.from({ length: 9 }, (_, index) =>
  clientRecord({ containerId: `sandbox-${index}`, netns: `/run/netns/pod-${index}`, addresses: [] }),
);

let folder: string;
let registry: ClientRegistry;
let steerer: Steerer;
/** What is to be done three seconds later. */
let later: (() => void)[];
/** What happened. */
let log: string[];
/** In whose namespaces a change is nobody else's doing. */
let expected: string[];
/** Who has to be looked at. */
let due: Set<string>;
let stop: () => Promise<void>;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "egress-nat-steerer-"));
  [log, later, expected, due] = [[], [], [], new Set()];
  registry = new ClientRegistry(new NodeState(locationsIn(folder), logger));
  for (const record of records) registry.add(record);
  const steer = async (netns: string) => {
    log.push(`steered ${netns}`);
    if (netns === records[2]?.netns) throw new Error("no such map");
    return netns === records[3]?.netns ? undefined : netns !== records[4]?.netns;
  };
  const reapply = (clients: readonly Attachment[]) => {
    for (const { containerId } of clients) log.push(`looked at ${containerId}`);
  };
  const expectChanges = ({ containerId }: Attachment) => expected.push(containerId);
  const expectLook = ({ containerId }: Attachment) => due.add(containerId);
  const after = (_: number, callback: () => void) => {
    later.push(callback);
    return () => undefined;
  };
  const view = { egress: () => undefined, gateways: () => [], clusterRanges: [] };
  steerer = new Steerer({
    ...{
      registry,
      networks: { steer },
      reapplier: { reapply, expectChanges, expectLook },
      logger,
      clock: { now: () => 0, after },
    },
    view: view as unknown as EgressView,
  });
  stop = runInBackground(steerer);
});

afterEach(async () => {
  await stop();
  rmSync(folder, { recursive: true });
});

/** What has happened by the time that so much has, in any order. */
async function happened(count: number): Promise<string[]> {
  await vi.waitFor(() => expect(log).toHaveLength(count));
  return log.splice(0).toSorted();
}

function threeSecondsLater(): void {
  for (const callback of later.splice(0)) callback();
}

const looks = (...indexes: readonly number[]) => indexes.map((index) => `looked at sandbox-${index}`);
const steerings = (...indexes: readonly number[]) =>
  indexes.map((index) => `steered /run/netns/pod-${index}`);

test("all clients are steered before any is looked at; at once only those that could not be", async () => {
  const all = records.map((_, index) => index);
  steerer.steer(records);
  await vi.waitFor(() => expect(log).toHaveLength(11));
  expect(log.slice(0, 9).toSorted()).toEqual(steerings(...all));
  expect(log.splice(0).slice(9).toSorted()).toEqual(looks(2, 3));
  expect(steerer.isIdle).toBe(false);
  threeSecondsLater();
  expect(await happened(7)).toEqual(looks(0, 1, 4, 5, 6, 7, 8));
  expect(steerer.isIdle).toBe(true);
});

test("what was changed, or may have been when it failed, is taken for nobody else's doing", async () => {
  steerer.steer(records.slice(0, 5));
  expect((await happened(7)).filter((each) => each.startsWith("steered"))).toHaveLength(5);
  expect(expected.toSorted()).toEqual(["sandbox-0", "sandbox-1", "sandbox-2"]);
});

test("a look is due at all of them, also where nothing was changed, or that failed", async () => {
  steerer.steer(records.slice(0, 5));
  await happened(7);
  expect([...due].toSorted()).toEqual(records.slice(0, 5).map(({ containerId }) => containerId));
});

test("a client that is steered again within that time is looked at once", async () => {
  steerer.steer(records.slice(0, 2));
  expect(await happened(2)).toEqual(steerings(0, 1));
  steerer.steer(records.slice(0, 1));
  expect(await happened(1)).toEqual(steerings(0));
  expect(later).toHaveLength(1);
  threeSecondsLater();
  expect(await happened(2)).toEqual(looks(0, 1));
});

test("only the owner of a network namespace says where its flows go", async () => {
  const last = clientRecord({
    ...{ containerId: "sandbox-last", netns: records[0]?.netns ?? "", addresses: [] },
    addedAt: "2026-12-01T00:00:00.000Z",
  });
  registry.add(last);
  steerer.steer(records.slice(0, 1));
  expect(await happened(1)).toEqual(looks(0));
  steerer.steer([last]);
  expect(await happened(1)).toEqual(steerings(0));
});

test("one that is gone by then is left alone", async () => {
  const [gone] = records;
  if (gone !== undefined) registry.bury(recordId(gone));
  steerer.steer(records.slice(0, 2));
  expect(await happened(1)).toEqual(steerings(1));
});
