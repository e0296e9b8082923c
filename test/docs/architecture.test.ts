import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ROOT } from "./markdown.ts";

const WORKSPACES = [
  ...["addresses", "crds", "founat", "kube", "program"],
  ...["operator", "egress-pod", "client-sidecar"],
];
const guide = readFileSync(join(ROOT, "docs/architecture.md"), "utf8");

describe("a workspace imports of the others what the table of parts says that it knows", () => {
  test.each(WORKSPACES)("%s", (workspace) => {
    const [, knows = ""] =
      new RegExp(`^\\| \\[${workspace}\\][^|]*\\|[^|]*\\|([^|]*)\\|$`, "m").exec(guide) ?? [];
    const imported = globSync(`${workspace}/src/**/*.ts`, {
      cwd: ROOT,
      exclude: (path) => path.endsWith(".test.ts") || path.includes("/testing"),
    }).flatMap((path) =>
      [...readFileSync(join(ROOT, path), "utf8").matchAll(/from "@egress-nat\/([\w-]+)/g)].map(
        ([, name = ""]) => name,
      ),
    );
    const known = WORKSPACES.filter((other) => knows.split(/[,;]/).some((word) => word.trim() === other));
    expect([...new Set(imported)].toSorted()).toEqual(known.toSorted());
  });
});
