import { expect, test } from "vitest";
import { clusterResource, namespacedResource, objectKey, resourcePath } from "./resource.ts";

const POD = namespacedResource("v1", "pods", "Pod");
const NODE = clusterResource("v1", "nodes", "Node");
const DEPLOYMENT = namespacedResource("apps/v1", "deployments", "Deployment");

test("paths are those of the API", () => {
  expect(resourcePath(POD)).toBe("/api/v1/pods");
  expect(resourcePath(POD, { namespace: "a", name: "b" })).toBe("/api/v1/namespaces/a/pods/b");
  expect(resourcePath(NODE, { name: "n" })).toBe("/api/v1/nodes/n");
  expect(resourcePath(DEPLOYMENT, { namespace: "a", name: "b", subresource: "scale" })).toBe(
    "/apis/apps/v1/namespaces/a/deployments/b/scale",
  );
});

test("a name cannot reach another path", () => {
  expect(resourcePath(POD, { namespace: "a", name: "../secrets?x" })).toBe(
    "/api/v1/namespaces/a/pods/..%2Fsecrets%3Fx",
  );
});

test("a namespaced object without a namespace is a mistake", () => {
  expect(() => resourcePath(POD, { name: "b" })).toThrow("Pod b lives in a namespace");
});

test("a key leaves out the absent namespace", () => {
  expect(objectKey({ metadata: { name: "b", namespace: "a" } })).toBe("a/b");
  expect(objectKey({ metadata: { name: "n" } })).toBe("n");
});
