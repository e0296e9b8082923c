import { readFileSync } from "node:fs";
import ts from "typescript";

const BLOCK = /^(describe|test|it)/;

/**
 * What the tests of a file are called, as Vitest joins a test's title to those of the blocks around it, and each title by
 * itself. A title that is filled in for each case is as the file has it, `%s` included. Of a file with cases for tests,
 * these are the cases' `title`s.
 */
export function testNames(file: string): ReadonlySet<string> {
  const source = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
  const names = new Set<string>();
  const visit = (node: ts.Node, blocks: readonly string[]): void => {
    const title = titleOf(node);
    if (title === undefined) {
      node.forEachChild((child) => visit(child, blocks));
      return;
    }
    const path = [...blocks, title];
    for (const index of path.keys()) names.add(path.slice(index).join(" "));
    node.forEachChild((child) => visit(child, path));
  };
  visit(source, []);
  return names;
}

function titleOf(node: ts.Node): string | undefined {
  if (ts.isPropertyAssignment(node) && ts.isIdentifier(node.name) && node.name.text === "title")
    return textOf(node.initializer);
  if (!ts.isCallExpression(node) || !BLOCK.test(calledName(node.expression))) return undefined;
  return textOf(node.arguments[0]);
}

/** `describe` of `describe(…)`, `describe.skipIf(…)(…)` and `describe.each<…>(…)(…)`. */
function calledName(callee: ts.Expression): string {
  if (ts.isIdentifier(callee)) return callee.text;
  if (ts.isCallExpression(callee) || ts.isPropertyAccessExpression(callee))
    return calledName(callee.expression);
  return "";
}

function textOf(title: ts.Node | undefined): string | undefined {
  if (title === undefined) return undefined;
  if (ts.isStringLiteralLike(title)) return title.text;
  return ts.isTemplateExpression(title) ? title.getText().slice(1, -1) : undefined;
}
