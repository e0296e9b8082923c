/** Tables in documents: how they are written, and where they stand. */

/** As the formatter of the repository writes it: columns of one width. @param rows the header first; cells are Markdown */
export function markdownTable(rows: readonly (readonly string[])[]): string {
  const [header = [], ...others] = rows.map((row) => row.map(escaped));
  const widths = header.map((title, column) =>
    Math.max(title.length, ...others.map((row) => row[column]?.length ?? 0)),
  );
  const rule = widths.map((width) => "-".repeat(width));
  return [header, rule, ...others]
    .map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |\n`)
    .join("");
}

/** A bar would end the cell, also where it is code. */
const escaped = (cell: string) => cell.replaceAll("|", "\\|");

/**
 * A document with another text between `<!-- NAME -->` and `<!-- end of NAME -->`, which stand on lines of their own.
 *
 * @throws Error when the document lacks the marks
 */
export function replaceBetweenMarks(document: string, name: string, text: string): string {
  const marks = [`<!-- ${name} -->\n`, `<!-- end of ${name} -->\n`] as const;
  const [begin, end] = marks.map((mark) => document.indexOf(mark)) as [number, number];
  if (begin === -1 || end < begin) throw new Error(`the document does not hold ${marks.join("")}`);
  return `${document.slice(0, begin)}${marks[0]}\n${text}\n${document.slice(end)}`;
}
