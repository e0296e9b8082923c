import { helmTemplate, NAMESPACE } from "@egress-nat/tools/chart/helm-template";
import { parseAllDocuments } from "yaml";
import type { Manifest } from "../bed/workload/kubectl.ts";

// biome-ignore lint/suspicious/noExplicitAny: a test asserts on any field of any object.
type Anything = any;

/** One rendered object. */
export interface Rendered extends Pick<Manifest, "kind" | "metadata"> {
  readonly [field: string]: Anything;
}

/** What `helm install` would apply, hooks included, with these values. */
export async function render(values: object = {}, namespace = NAMESPACE): Promise<readonly Rendered[]> {
  const { stdout } = await helmTemplate({ values, namespace });
  return objectsIn(stdout);
}

export function objectsIn(yaml: string): readonly Rendered[] {
  return parseAllDocuments(yaml).flatMap((document) => document.toJS() ?? []);
}

/** @returns what helm complains of */
export async function renderFailure(values: object): Promise<string> {
  return (await helmTemplate({ values, reject: false })).stderr;
}

/** The object of that kind and name, among those that are or are not hooks. */
export function find(objects: readonly Rendered[], kind: string, name: string): Rendered {
  const object = objects.find((candidate) => candidate.kind === kind && candidate.metadata.name === name);
  if (object === undefined) throw new Error(`the chart has no ${kind} ${name}`);
  return object;
}
