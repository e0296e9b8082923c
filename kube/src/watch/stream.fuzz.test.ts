import { fuzzBytes } from "@egress-nat/test/fuzz/bytes";
import { expect, test } from "vitest";
import { KubeError } from "../error.ts";
import type { Transport } from "../transport/transport.ts";
import { listObjects } from "./list.ts";
import { watchObjects } from "./watch.ts";

const json = (...values: readonly unknown[]) =>
  Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(""));

const OBJECT = { metadata: { name: "a", uid: "1", resourceVersion: "7" }, data: { text: '"\\{[é' } };
const LIST = { kind: "List", metadata: { resourceVersion: "7" }, items: [OBJECT, OBJECT] };

/** Answers with these, one after the other, cut in two. */
function answering(...answers: readonly Uint8Array[]): Transport {
  const left = [...answers];
  return {
    stream: async () => {
      const bytes = Buffer.from(left.shift() ?? []);
      const middle = bytes.length >> 1;
      return (async function* () {
        yield bytes.subarray(0, middle);
        yield bytes.subarray(middle);
      })();
    },
    request: () => Promise.reject(new Error("not asked for")),
    close: () => undefined,
  };
}

async function expectKubeErrorAtMost(work: Promise<unknown>): Promise<void> {
  const error = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (error !== undefined) expect(error).toBeInstanceOf(KubeError);
}

test("any answer to a list is one, or an error of the API's kind", () =>
  fuzzBytes([json(LIST), json({ ...LIST, metadata: { resourceVersion: "7", continue: "b" } })], (bytes) =>
    expectKubeErrorAtMost(
      listObjects({
        transport: answering(bytes, json(LIST)),
        path: "/api/v1/pods",
        convert: (raw) => raw,
      }),
    ),
  ));

test("any answer to a watch is events, or ends with an error of the API's kind", () =>
  fuzzBytes(
    [
      json({ type: "ADDED", object: OBJECT }, { type: "BOOKMARK", object: OBJECT }),
      json({ type: "ERROR", object: { code: 410, message: "gone", details: { retryAfterSeconds: 1 } } }),
    ],
    (bytes) =>
      expectKubeErrorAtMost(
        (async () => {
          const events = await watchObjects({
            transport: answering(bytes),
            path: "/api/v1/pods",
            resourceVersion: "7",
            idleTimeoutMs: 1,
          });
          for await (const { type } of events) expect(type).toMatch(/^(ADDED|MODIFIED|DELETED|BOOKMARK)$/);
        })(),
      ),
  ));
