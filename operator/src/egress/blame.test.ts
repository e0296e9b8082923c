import { KubeError } from "@egress-nat/kube";
import { expect, test } from "vitest";
import { blameOf } from "./blame.ts";

test.each([
  ["a spec that is invalid", 422, "spec.template", "object"],
  ["a write that is forbidden", 403, "quota exceeded", "object"],
  ["a webhook that cannot be asked", 500, "failed calling webhook", "object"],
  ["an election of etcd", 500, "etcdserver: leader changed", "server"],
  ["another version of the object meanwhile", 409, "Conflict", undefined],
  ["an API server that is busy", 429, "TooManyRequests", undefined],
  ["an answer that does not come", undefined, "no connection", undefined],
] as const)("of %s the blame is on: %s %s %s", (_, status, message, expected) => {
  const retryable = status === undefined || status === 409 || status === 429 || status === 500;
  const error = new KubeError(`PATCH: ${message}`, { code: "Any", status, retryable });
  expect(blameOf(error)).toBe(expected);
});
