import { expect, test } from "vitest";
import type { Rendered } from "./render.ts";
import { renderedDifferences } from "./rendered-differences.ts";

const pod = (namespace: string, ...containers: readonly object[]): Rendered => ({
  kind: "Pod",
  metadata: { namespace, name: "a" },
  spec: { containers },
});

const ONE = { name: "one", image: "x" };
const TWO = { name: "two", image: "y" };

test("the same is no difference", () => {
  expect(renderedDifferences([pod("n", ONE, TWO)], [pod("n", ONE, TWO)])).toBe("");
});

test("a field is told by the names of what holds it", () => {
  const changes = renderedDifferences([pod("n", ONE, TWO)], [pod("n", ONE, { ...TWO, image: "z" })]);
  expect(changes).toBe("\nPod n/a\n- spec.containers[two].image: y\n+ spec.containers[two].image: z\n");
});

test("objects of one kind and name in two namespaces are two", () => {
  const changes = renderedDifferences([pod("m", ONE), pod("n", TWO)], [pod("m", TWO), pod("n", ONE)]);
  expect(changes.match(/^Pod .*$/gm)).toEqual(["Pod m/a", "Pod n/a"]);
});

test("elements with names that change places are a difference", () => {
  const changes = renderedDifferences([pod("n", ONE, TWO)], [pod("n", TWO, ONE)]);
  expect(changes).toBe("\nPod n/a\n~ spec.containers[two].name: two\n");
});
