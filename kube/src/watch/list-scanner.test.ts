import fc from "fast-check";
import { expect, test } from "vitest";
import { ListScanner } from "./list-scanner.ts";

/** Scans a text in pieces of the given sizes, over and over. */
function scan(text: string, sizes: readonly number[]): { items: unknown[]; envelope: unknown } {
  const scanner = new ListScanner();
  const bytes = Buffer.from(text);
  const items: string[] = [];
  for (let start = 0, i = 0; start < bytes.length; i += 1) {
    const end = start + (sizes[i % sizes.length] ?? 1);
    items.push(...scanner.push(bytes.subarray(start, end)));
    start = end;
  }
  return { items: items.map((item) => JSON.parse(item)), envelope: JSON.parse(scanner.envelope()) };
}

test("any list comes apart into its items and the rest, wherever the network cuts it", () => {
  const item = fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue());
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 });
  const indent = fc.constantFrom(0, 2);
  fc.assert(
    fc.property(
      fc.array(item),
      fc.jsonValue(),
      sizes,
      indent,
      fc.boolean(),
      (items, other, cuts, space, last) => {
        const rest = { kind: "List", metadata: { resourceVersion: "7", items: [other] }, other };
        const list = last ? { ...rest, items } : { items, ...rest };
        const result = scan(JSON.stringify(list, undefined, space), cuts);
        expect(result.items).toEqual(JSON.parse(JSON.stringify(items)));
        expect(result.envelope).toEqual(JSON.parse(JSON.stringify({ ...rest, items: [] })));
      },
    ),
  );
});

test("a list without items may say null", () => {
  expect(scan('{"items":null,"metadata":{"resourceVersion":"7"}}', [5])).toEqual({
    items: [],
    envelope: { items: null, metadata: { resourceVersion: "7" } },
  });
});

test("an answer that is no list is all rest", () => {
  expect(scan('{"kind":"Status","code":500}', [3])).toEqual({
    items: [],
    envelope: { kind: "Status", code: 500 },
  });
});
