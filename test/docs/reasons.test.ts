import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./markdown.ts";

/** Kubernetes' own, which are passed on or written by others. */
const OF_KUBERNETES = ["FailedCreate", "ProgressDeadlineExceeded", "FailedCreatePodSandBox"];

const sources = globSync("{operator,egress-pod,client-sidecar}/src/**/*.ts", {
  cwd: ROOT,
  exclude: (path) => path.endsWith(".test.ts") || path.includes("/testing/"),
})
  .map((path) => readFileSync(join(ROOT, path), "utf8"))
  .join("\n");

/** Of conditions and events, as the programs' sources name them. */
const given = [...sources.matchAll(/(?:reason: |normal\()"([A-Z]\w+)"/g)].map(([, reason = ""]) => reason);

const guide = readFileSync(join(ROOT, "docs/operations.md"), "utf8");

/** The words of a table's second column. */
function reasonsBelow(heading: string): string[] {
  const [, section = ""] = guide.split(`\n## ${heading}\n`);
  const [table = ""] = section.split("\n#");
  return [...table.matchAll(/^\|[^|]*\|([^|]*)\|/gm)].flatMap(([, column = ""]) =>
    [...column.matchAll(/`(\w+)`/g)].map(([, reason = ""]) => reason),
  );
}

const named = [...reasonsBelow("Conditions of an Egress"), ...reasonsBelow("Events")];

test("each reason of a condition or an event that the operations guide names exists", () => {
  expect(named.length).toBeGreaterThan(20);
  const unknown = named.filter((reason) => !sources.includes(`"${reason}"`));
  expect(unknown.filter((reason) => !OF_KUBERNETES.includes(reason))).toEqual([]);
});

test("each reason of a condition or an event is in the operations guide", () => {
  expect(given.length).toBeGreaterThan(20);
  expect(given.filter((reason) => !guide.includes(`\`${reason}\``))).toEqual([]);
});
