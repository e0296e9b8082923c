import { stringify } from "yaml";
import type { Rendered } from "./render.ts";

/**
 * How two renderings differ, as a person reads it: by object, a line for each field with its whole path. Elements of a
 * list go by their names, where they have them: `containers[operator].image`. Of those that only changed places, the
 * first line that comes earlier than before is told.
 */
export function renderedDifferences(before: readonly Rendered[], after: readonly Rendered[]): string {
  const names = [...new Set([...before, ...after].map(nameOf))].toSorted();
  return names.map((name) => changesOf(name, fieldsOf(before, name), fieldsOf(after, name))).join("");
}

const nameOf = ({ kind, metadata: { namespace, name } }: Rendered) =>
  `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;

function changesOf(name: string, before: readonly string[], after: readonly string[]): string {
  const gone = before.filter((line) => !after.includes(line)).map((line) => `- ${line}\n`);
  const added = after.filter((line) => !before.includes(line)).map((line) => `+ ${line}\n`);
  const changes = [...gone, ...added, ...earlierOf(before, after)];
  return changes.length === 0 ? "" : `\n${name}\n${changes.join("")}`;
}

/** Whether what is in both is in another order, by the first line that shows it. */
function earlierOf(before: readonly string[], after: readonly string[]): readonly string[] {
  const kept = before.filter((line) => after.includes(line));
  const first = after.filter((line) => before.includes(line)).find((line, index) => line !== kept[index]);
  return first === undefined ? [] : [`~ ${first}\n`];
}

function fieldsOf(objects: readonly Rendered[], name: string): readonly string[] {
  return objects.filter((object) => nameOf(object) === name).flatMap((object) => lines(object, ""));
}

function lines(value: unknown, path: string): readonly string[] {
  if (typeof value !== "object" || value === null) return [`${path}: ${inline(value)}`];
  const fields = Array.isArray(value) ? elements(value) : properties(value);
  return fields.length === 0
    ? [`${path}: ${inline(value)}`]
    : fields.flatMap(([step, field]) => lines(field, path === "" ? step.replace(/^\./, "") : path + step));
}

type Field = readonly [step: string, value: unknown];

const properties = (value: object): readonly Field[] =>
  Object.entries(value).map(([key, field]) => [/^\w+$/.test(key) ? `.${key}` : `["${key}"]`, field]);

function elements(list: readonly unknown[]): readonly Field[] {
  const names = list.map((element) => (element as { name?: string } | null)?.name);
  const named = new Set(names).size === list.length && !names.includes(undefined);
  return list.map((element, index) => [`[${named ? names[index] : index}]`, element]);
}

const inline = (value: unknown) => stringify(value, { lineWidth: 0, collectionStyle: "flow" }).trim();
