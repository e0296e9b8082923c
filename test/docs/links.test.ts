import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const documents = globSync(["*.md", "{docs,addresses,founat,config,tools,test}/**/*.md"], {
  cwd: root,
  exclude: (path) => path.includes("node_modules"),
});
const markdownLink = /\[[^\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g;

test.each(documents)(
  "every relative link in %s leads to a file, and to a heading that it has",
  (document) => {
    const file = join(root, document);
    const links = [...readFileSync(file, "utf8").matchAll(markdownLink)].map(([, path = "", anchor]) => {
      const target = path === "" ? file : join(dirname(file), path);
      return { target, anchor, text: relative(root, target) + (anchor === undefined ? "" : `#${anchor}`) };
    });
    const broken = links.filter(
      ({ target, anchor }) =>
        !existsSync(target) || (anchor !== undefined && !anchorsIn(target).includes(anchor)),
    );
    expect(broken.map(({ text }) => text)).toEqual([]);
  },
);

/** As GitHub makes them of headings. */
function anchorsIn(file: string): string[] {
  return [...readFileSync(file, "utf8").matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\- _]/gu, "")
      .replaceAll(" ", "-"),
  );
}
