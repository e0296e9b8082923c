import { describe, expect, test } from "vitest";
import { appliedFields, type FieldSet, ownsAll, sharingLeaves, takenOver } from "./managed-fields.ts";

const leaf: FieldSet = {};

describe("a manager owns all that it has applied when", () => {
  test.each<[string, FieldSet, object]>([
    ["each plain field is its own", { "f:spec": { "f:replicas": leaf } }, { spec: { replicas: 2 } }],
    [
      "a map has one owner as a whole",
      { "f:spec": { "f:selector": leaf } },
      { spec: { selector: { a: "b" } } },
    ],
    ["a list has one owner as a whole", { "f:rules": leaf }, { rules: [{ verbs: ["get"] }] }],
    ["a set holds the value", { "f:finalizers": { 'v:"a"': leaf } }, { finalizers: ["a"] }],
    [
      "an item with the same keys is its own",
      { "f:ports": { 'k:{"port":80,"protocol":"TCP"}': { ".": leaf, "f:port": leaf } } },
      { ports: [{ port: 80 }] },
    ],
    [
      "of two items the one with the very keys is its own",
      {
        "f:ports": {
          'k:{"port":53,"protocol":"TCP"}': { "f:port": leaf, "f:protocol": leaf },
          'k:{"port":53,"protocol":"UDP"}': { "f:port": leaf, "f:protocol": leaf, "f:name": leaf },
        },
      },
      { ports: [{ port: 53, protocol: "UDP", name: "dns" }] },
    ],
    ["what it left undefined is nobody's", { "f:spec": { "f:a": leaf } }, { spec: { a: 1, b: undefined } }],
    ["only the identity of the object is left", { "f:spec": leaf }, { metadata: { name: "n" }, spec: {} }],
  ])("%s", (_, owned, applied) => {
    expect(ownsAll(owned, { apiVersion: "v1", kind: "Thing", ...applied })).toBe(true);
  });
});

describe("a manager has lost something when", () => {
  test.each<[string, FieldSet, object]>([
    ["a plain field is not its own", { "f:spec": { "f:other": leaf } }, { spec: { replicas: 2 } }],
    ["nothing is its own", {}, { spec: { replicas: 2 } }],
    [
      "a label is not its own",
      { "f:metadata": { "f:labels": { "f:b": leaf } } },
      { metadata: { labels: { a: "1" } } },
    ],
    ["an item is not its own", { "f:ports": { 'k:{"port":81}': leaf } }, { ports: [{ port: 80 }] }],
    ["a value is no longer in the set", { "f:finalizers": { 'v:"b"': leaf } }, { finalizers: ["a"] }],
    [
      "two items may be meant and it cannot tell which",
      { "f:ports": { 'k:{"port":53,"protocol":"TCP"}': leaf, 'k:{"port":53,"protocol":"UDP"}': leaf } },
      { ports: [{ port: 53 }] },
    ],
  ])("%s", (_, owned, applied) => {
    expect(ownsAll(owned, applied)).toBe(false);
  });
});

test("only what a manager applied to the object itself counts as its own", () => {
  const fieldsV1 = { "f:spec": leaf };
  const entry = { manager: "us", operation: "Apply", fieldsV1 };
  expect(appliedFields([entry], "us")).toBe(fieldsV1);
  expect(appliedFields([{ ...entry, manager: "them" }], "us")).toBeUndefined();
  expect(appliedFields([{ ...entry, operation: "Update" }], "us")).toBeUndefined();
  expect(appliedFields([{ ...entry, subresource: "status" }], "us")).toBeUndefined();
  expect(appliedFields(undefined, "us")).toBeUndefined();
});

describe("a manager that takes over", () => {
  const ours = { manager: "us", operation: "Apply", fieldsV1: { "f:spec": { "f:a": leaf, "f:list": leaf } } };
  const theirs = { manager: "kubectl-edit", operation: "Update" };

  test("has applied what others have set as well, but leaves them their labels and the status", () => {
    const metadata = { "f:metadata": { "f:labels": { "f:team": leaf } } };
    const status = {
      manager: "controller",
      operation: "Update",
      subresource: "status",
      fieldsV1: { "f:status": leaf },
    };
    const fieldsV1 = { ...metadata, "f:spec": { "f:b": leaf, "f:list": { 'v:"x"': leaf } } };
    expect(takenOver([{ ...theirs, fieldsV1 }, status, ours], "us")).toEqual([
      { ...ours, fieldsV1: { "f:spec": { "f:a": leaf, "f:b": leaf, "f:list": { 'v:"x"': leaf } } } },
      { ...theirs, fieldsV1: metadata },
      status,
    ]);
  });

  test("finds nothing where others have only set metadata, or it has applied nothing itself", () => {
    const metadata = { ...theirs, fieldsV1: { "f:metadata": leaf } };
    expect(takenOver([ours, metadata], "us")).toBeUndefined();
    expect(takenOver([{ ...theirs, fieldsV1: { "f:spec": leaf } }], "us")).toBeUndefined();
    expect(takenOver(undefined, "us")).toBeUndefined();
  });
});

test("a set whose leaves are one object is the same set", () => {
  const set: FieldSet = JSON.parse(
    '{"f:spec":{"f:replicas":{},"f:ports":{"k:{\\"port\\":80}":{".":{},"f:port":{}}}}}',
  );
  const shared = sharingLeaves(set);
  expect(shared).toEqual(set);
  expect(shared["f:spec"]?.["f:replicas"]).toBe(shared["f:spec"]?.["f:ports"]?.['k:{"port":80}']?.["."]);
});
