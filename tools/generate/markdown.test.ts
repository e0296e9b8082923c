import { expect, test } from "vitest";
import { markdownTable, replaceBetweenMarks } from "./markdown.ts";

test("a table has columns of one width, and a bar ends no cell", () => {
  const rows = [
    ["a", "long title"],
    ["x|y", ""],
  ];
  expect(markdownTable(rows)).toBe(`| a    | long title |
| ---- | ---------- |
| x\\|y |            |
`);
});

const DOCUMENT = `before
<!-- one -->
old
<!-- end of one -->
after
`;

test("what is between the marks of a name is replaced, as it is written", () => {
  expect(replaceBetweenMarks(DOCUMENT, "one", "$& new\n")).toBe(`before
<!-- one -->

$& new

<!-- end of one -->
after
`);
});

test.each([
  ["has none", "before\n"],
  ["has the first alone", "<!-- one -->\n"],
  ["has them the other way round", "<!-- end of one -->\n<!-- one -->\n"],
])("a document that %s of the marks is refused", (_, document) => {
  expect(() => replaceBetweenMarks(document, "one", "new")).toThrow("<!-- one -->");
});
