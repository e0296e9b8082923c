import { readFileSync } from "node:fs";
import { join } from "node:path";
import { KubeError, type Transport } from "@egress-nat/kube";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { silentLogger } from "../testing/cluster.ts";
import { DefinitionsCheck } from "./definitions.ts";

const CRDS = join(import.meta.dirname, "../../../crds/crds");
const MINUTE_MS = 60_000;

const [egresses, slices] = ["egresses", "egressclientslices"].map((plural) => {
  const { spec } = parse(readFileSync(join(CRDS, `${plural}.yaml`), "utf8"));
  const known = { "x-kubernetes-group-version-kind": [{ kind: spec.names.kind }] };
  return { ...spec.versions[0].schema.openAPIV3Schema, ...known };
});

/** OpenAPI documents as the API server has them. */
const ofThisRelease = () => ({ components: { schemas: { egresses, slices } } });
const withoutEgresses = () => ({ components: { schemas: { slices } } });

let answer: () => unknown;
let check: DefinitionsCheck;
let stop: AbortController;
let running: Promise<void> | undefined;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  stop = new AbortController();
  const transport = { request: async () => answer() } as unknown as Transport;
  check = new DefinitionsCheck(transport, silentLogger);
});

afterEach(async () => {
  stop.abort();
  await running;
  running = undefined;
  vi.useRealTimers();
});

/** Has an API server answer like this, and looks at it for so long. */
async function look(answers: () => unknown, forMs: number): Promise<readonly string[]> {
  answer = answers;
  running ??= check.run(stop.signal);
  await vi.advanceTimersByTimeAsync(forMs);
  return check.check.reasons;
}

test.each([
  ["a document of another form", () => ({ components: {} }), "the answer is not an OpenAPI document"],
  ["nothing", () => undefined, "the answer is not an OpenAPI document"],
  [
    "a schema that is none",
    () => ({ components: { schemas: { odd: null } } }),
    "the answer is not an OpenAPI document",
  ],
  [
    "a refusal",
    () => {
      throw new KubeError("403 Forbidden", { code: "Forbidden", retryable: false });
    },
    "403 Forbidden",
  ],
])(
  "%s in place of the definitions is a reason not to be ready, until they can be read",
  async (_, odd, why) => {
    expect(await look(odd, 0)).toEqual([
      expect.stringMatching(new RegExp(`^the definitions of Egresses cannot be read: .*${why}`)),
    ]);
    expect(await look(ofThisRelease, 5_000)).toEqual([]);
  },
);

test("definitions that somebody puts in the place of this release's are seen within minutes", async () => {
  expect(await look(ofThisRelease, 0)).toEqual([]);
  expect(await look(withoutEgresses, 2 * MINUTE_MS)).toEqual([
    expect.stringMatching(/^CustomResourceDefinition egresses\.coil\.cybozu\.com is not of this release/),
  ]);
  expect(await look(ofThisRelease, 5_000)).toEqual([]);
});
