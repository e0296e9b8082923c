import { expect, test, vi } from "vitest";
import { parseSlice } from "./slice.ts";

const METADATA = {
  name: "egress-n1",
  namespace: "internet",
  uid: "slice-1",
  generation: 3,
  resourceVersion: "7",
};

const ENTRY = {
  namespace: "default",
  name: "web-0",
  uid: "pod-1",
  addresses: ["10.244.1.2", "fd00:244::2"],
  addedAt: "2026-01-01T00:00:00Z",
};

function parse(clients: readonly object[]) {
  const warn = vi.fn();
  const slice = parseSlice({ metadata: METADATA, nodeName: "n1", clients }, { warn });
  return { slice, warn };
}

test("an entry belongs to its slice and its pod", () => {
  const { slice, warn } = parse([ENTRY]);
  expect(slice).toEqual({
    metadata: METADATA,
    entries: [
      { id: "slice-1/pod-1", addresses: ["10.244.1.2", "fd00:244::2"], addedAtMs: Date.UTC(2026, 0, 1) },
    ],
  });
  expect(warn).not.toHaveBeenCalled();
});

test("spellings of one IPv6 address are one address", () => {
  const { slice } = parse([{ ...ENTRY, addresses: ["FD00:244:0:0::00a2"] }]);
  expect(slice.entries[0]?.addresses).toEqual(["fd00:244::a2"]);
});

test.each(["2026-01-01T00:00:00.000001Z", "2026-01-01T01:00:00.000001+01:00"])(
  "%s is later than midnight",
  (addedAt) => {
    const { slice } = parse([ENTRY, { ...ENTRY, addedAt }]);
    const [midnight, later] = slice.entries.map(({ addedAtMs }) => addedAtMs);
    expect(later).toBeGreaterThan(midnight as number);
  },
);

test("a malformed entry is left out with a warning that names the slice; the others hold", () => {
  const { slice, warn } = parse([{ ...ENTRY, addresses: ["10.244.1.300"] }, ENTRY]);
  expect(slice.entries.map(({ id }) => id)).toEqual(["slice-1/pod-1"]);
  expect(warn).toHaveBeenCalledExactlyOnceWith(
    { slice: "egress-n1", node: "n1", index: 0, reason: expect.stringContaining("10.244.1.300") },
    expect.any(String),
  );
});
