import { done, KubeError, requeueAfter, stalled } from "@egress-nat/kube";
import { describe, expect, test } from "vitest";
import type { Applied } from "./apply.ts";
import { NO_CHILDREN } from "./observed.ts";
import { outcomeOf } from "./outcome.ts";
import type { StoredEgress } from "./status.ts";
import { anEgress } from "./testing/egress.ts";

const AS_WANTED: Applied = {
  ...{ children: NO_CHILDREN, created: [], problems: [], failures: [] },
  ...{ refusal: undefined, hold: undefined },
};
const NAME_CONFLICT = { reason: "NameConflict", message: "Service internet/nat exists" };

const error = (code: string, status: number) => new KubeError(code, { code, status, retryable: true });
const conflict = error("Conflict", 409);
const failure = error("InternalError", 500);
const refusal = error("Invalid", 422);

const outcome = (applied: Partial<Applied>, egress: StoredEgress = anEgress({}), met?: KubeError) =>
  outcomeOf(egress, { ...AS_WANTED, ...applied }, met);

describe("an Egress", () => {
  test("whose children are as they should be is done with", () => {
    expect(outcome({})).toEqual(done);
  });

  test("whose name is taken waits for a person, and is looked at now and again: no watch tells of the other object", () => {
    expect(outcome({ problems: [NAME_CONFLICT] })).toEqual(stalled(30_000));
  });

  test("that is not understood waits for a change", () => {
    expect(outcome({}, { ...anEgress({}), invalid: "spec.destinations[0]: not a CIDR" })).toEqual(stalled());
  });

  test("that waits for its turn is looked at in case that nobody wakes it", () => {
    expect(outcome({ hold: "UpgradeWaits" })).toEqual(requeueAfter(30_000));
  });

  test("whose upgrade is paused waits for its author", () => {
    expect(outcome({ hold: "UpgradePaused" })).toEqual(done);
  });

  test.each([
    ["that a child was refused", { refusal }, refusal],
    ["that the API server has failed", { failures: [{ child: "service", error: failure }] }, failure],
    ["a failure before a refusal", { refusal, failures: [{ child: "service", error: failure }] }, failure],
    ["a refusal before a name that is taken", { refusal, problems: [NAME_CONFLICT] }, refusal],
  ] as const)("is tried again, and the log says %s", (_, applied, expected) => {
    expect(() => outcome(applied)).toThrow(expected);
  });

  test("that has changed before its status was written is looked at again, whatever else was met", () => {
    expect(() => outcome({ refusal }, anEgress({}), conflict)).toThrow(conflict);
  });
});
