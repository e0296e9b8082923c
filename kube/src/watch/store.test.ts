import { beforeEach, expect, test } from "vitest";
import type { KubeObject } from "../objects/resource.ts";
import { type Change, Store } from "./store.ts";

interface Bed extends KubeObject {
  readonly plants: readonly string[];
}

const bed = (
  name: string,
  resourceVersion: string,
  plants: readonly string[] = [],
  uid = `uid-${name}`,
): Bed => ({
  metadata: { namespace: "garden", name, uid, resourceVersion },
  plants,
});

let store: Store<Bed>;
let changes: Change<Bed>[];
const told = () => changes.splice(0).map(({ type, key }) => `${type} ${key}`);

beforeEach(() => {
  store = new Store();
  changes = [];
  store.onChange((change) => changes.push(change));
});

test("what is put, put again and removed is told", () => {
  store.put(bed("a", "1"));
  store.put(bed("a", "2", ["kale"]));
  expect(changes[1]).toMatchObject({ previous: { metadata: { resourceVersion: "1" } } });
  store.remove("garden/a");
  expect(told()).toEqual(["added garden/a", "updated garden/a", "deleted garden/a"]);
  expect(store.size).toBe(0);
});

test("a version that differs in nothing that is kept replaces the former one, and is told to nobody", () => {
  store.put(bed("a", "1", ["kale"]));
  store.put(bed("a", "2", ["kale"]));
  expect(told()).toEqual(["added garden/a"]);
  expect(store.get("garden/a")?.metadata.resourceVersion).toBe("2");
});

test("the same version again is no change", () => {
  store.put(bed("a", "1"));
  store.put(bed("a", "1"));
  expect(told()).toEqual(["added garden/a"]);
});

test("a name that is used again is a deletion and an addition", () => {
  store.put(bed("a", "1"));
  store.put(bed("a", "2", [], "another"));
  expect(told()).toEqual(["added garden/a", "deleted garden/a", "added garden/a"]);
  expect(store.get("garden/a")?.metadata.uid).toBe("another");
});

test("to remove what is not there is no change", () => {
  store.remove("garden/a");
  expect(told()).toEqual([]);
});

test("a new list tells the differences only, deletions first", () => {
  for (const name of ["same", "changed", "gone", "replaced"]) store.put(bed(name, "1"));
  told();
  store.replaceAll([
    bed("new", "5"),
    bed("same", "1"),
    bed("changed", "2", ["leek"]),
    bed("replaced", "6", [], "other"),
  ]);
  expect(told()).toEqual([
    "deleted garden/gone",
    "added garden/new",
    "updated garden/changed",
    "deleted garden/replaced",
    "added garden/replaced",
  ]);
});

test("a listener sees all of a new list in the store", () => {
  const sizes: number[] = [];
  store.onChange(() => sizes.push(store.size));
  store.replaceAll([bed("a", "1"), bed("b", "1")]);
  expect(sizes).toEqual([2, 2]);
});

test("a listener that has ended is told nothing", () => {
  const others: string[] = [];
  const end = store.onChange(({ key }) => others.push(key));
  store.put(bed("a", "1"));
  end();
  store.put(bed("b", "1"));
  expect(others).toEqual(["garden/a"]);
});

test("an index follows every change", () => {
  store.put(bed("early", "1", ["kale"]));
  store.addIndex("plant", ({ plants }) => plants);
  const withKale = () => store.byIndex("plant", "kale").map(({ metadata }) => metadata.name);
  store.put(bed("late", "1", ["kale", "leek"]));
  expect(withKale()).toEqual(["early", "late"]);
  store.put(bed("early", "2", ["leek"]));
  expect(withKale()).toEqual(["late"]);
  store.replaceAll([bed("other", "1", ["kale"])]);
  expect(withKale()).toEqual(["other"]);
  expect(store.byIndex("plant", "leek")).toEqual([]);
});
