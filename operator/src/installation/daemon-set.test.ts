import { expect, test } from "vitest";
import { progressOf } from "./daemon-set.ts";

const metadata = { name: "agent", namespace: "egress-nat", generation: 2 };
const none = { observedGeneration: 0, desiredNumberScheduled: 0, updatedNumberScheduled: 0, numberReady: 0 };
const seen = { observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3 };

test.each([
  ["that nobody has looked at", none, { ready: 0, nodes: 0, isDone: false }],
  ["that starts", { ...seen, numberReady: 1 }, { ready: 1, nodes: 3, isDone: false }],
  [
    "of which only old pods are ready",
    { ...seen, updatedNumberScheduled: 1, numberReady: 3 },
    { ready: 1, nodes: 3, isDone: false },
  ],
  ["that is ready on every node", { ...seen, numberReady: 3 }, { ready: 3, nodes: 3, isDone: true }],
  ["without nodes", { ...none, observedGeneration: 2 }, { ready: 0, nodes: 0, isDone: true }],
])("a DaemonSet %s", (_, status, progress) => {
  expect(progressOf({ metadata, status: { ...none, ...status } })).toEqual(progress);
});
