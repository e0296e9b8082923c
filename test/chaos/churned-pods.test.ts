import { expect, test } from "vitest";
import { clientsAmong, haveComeAndGone, successorsOfVisitors } from "./churned-pods.ts";
import type { RunningPod } from "./pods.ts";

const MINUTE_MS = 60_000;
const TIMES = { forMs: 5 * MINUTE_MS, atMostMs: 35 * MINUTE_MS };

const pod = (name: string, ipv4: string, phase = "Succeeded", reason = ""): RunningPod => ({
  ...{ name, ipv4, phase, end: { reason, message: "" }, uid: name, node: "n1", ipv6: "" },
  ...{ isReady: false, isTerminating: false, containerId: "" },
});

const REUSED = [pod("visitor-1", "10.0.0.5"), pod("intruder-1", "10.0.0.5")];
const NOT_REUSED = [pod("visitor-1", "10.0.0.5"), pod("intruder-1", "10.0.0.6")];

test("an intruder follows a visitor whose address it has, if the visitor had gone before", () => {
  expect(successorsOfVisitors(REUSED).map(({ name }) => name)).toEqual(["intruder-1"]);
  expect(successorsOfVisitors(NOT_REUSED)).toEqual([]);
  expect(successorsOfVisitors(REUSED.toReversed())).toEqual([]);
});

test("an intruder that has not done what it came for follows nobody", () => {
  const [visitor] = REUSED as [RunningPod];
  for (const phase of ["Pending", "Running", "Failed"]) {
    expect(successorsOfVisitors([visitor, pod("intruder-1", "10.0.0.5", phase)])).toEqual([]);
  }
});

test.each([
  ["as long as they must", REUSED, 4, false],
  ["no longer where an address was used again", REUSED, 5, true],
  ["longer where none was", NOT_REUSED, 5, false],
  ["not for ever where none is", NOT_REUSED, 35, true],
])("pods come and go %s", (_, pods, minutes, haveGone) => {
  expect(haveComeAndGone(pods, minutes * MINUTE_MS, TIMES)).toBe(haveGone);
});

test("a client is served or refused only where its node could start its program, or never came to that", () => {
  const served = pod("visitor-1", "10.0.0.5");
  const refused = pod("visitor-2", "10.0.0.6", "Failed", "Error");
  const waiting = pod("visitor-3", "", "Pending");
  const notStarted = pod("visitor-4", "10.0.0.7", "Failed", "StartError");
  const intruder = pod("intruder-1", "10.0.0.8");
  expect(clientsAmong([served, refused, waiting, notStarted, intruder])).toEqual([served, refused, waiting]);
});
