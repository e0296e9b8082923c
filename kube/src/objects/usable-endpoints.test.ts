import { expect, test } from "vitest";
import type { Endpoint } from "./endpoint-slice.ts";
import { usableEndpoints } from "./usable-endpoints.ts";

const HERE = { nodeName: "n1", zone: "a" };

function endpoint(name: string, changes: Partial<Endpoint> = {}): Endpoint {
  return {
    ...{ name, nodeName: "n9", addresses: ["192.0.2.1"], ready: true, serving: true, terminating: false },
    ...changes,
  };
}
const leaving = { ready: false, terminating: true };
const forNodes = (...nodes: string[]) => ({ hints: { forNodes: nodes, forZones: [] } });
const forZones = (...zones: string[]) => ({ hints: { forNodes: [], forZones: zones } });

test.each<[string, readonly Endpoint[], readonly string[]]>([
  ["nobody where there is nobody", [], []],
  ["those that are ready, and not those that terminate", [endpoint("a"), endpoint("b", leaving)], ["a"]],
  ["those that terminate and serve, where none is ready", [endpoint("b", leaving)], ["b"]],
  ["none that serve no more", [endpoint("b", { ...leaving, serving: false })], []],
  ["none that are not ready and do not terminate", [endpoint("c", { ready: false, serving: false })], []],
  ["those for this node", [endpoint("a", forNodes("n1")), endpoint("b", forNodes("n2"))], ["a"]],
  ["those for this zone", [endpoint("a", forZones("a", "b")), endpoint("b", forZones("b"))], ["a"]],
  [
    "all where none is for this zone",
    [endpoint("a", forZones("b")), endpoint("b", forZones("b"))],
    ["a", "b"],
  ],
  ["all where one does not say for whom", [endpoint("a", forZones("a")), endpoint("b")], ["a", "b"]],
  [
    "those that terminate whatever they were meant for, where none is ready",
    [endpoint("a", { ...leaving, ...forZones("b") })],
    ["a"],
  ],
])("new connections go to %s", (_, endpoints, names) => {
  expect(usableEndpoints(endpoints, HERE).map(({ name }) => name)).toEqual(names);
});

test("a node without a zone takes no hint of zones", () => {
  const endpoints = [endpoint("a", forZones("a")), endpoint("b", forZones("b"))];
  expect(usableEndpoints(endpoints, { ...HERE, zone: undefined })).toEqual(endpoints);
});
