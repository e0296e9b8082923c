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

function parse(clients: readonly unknown[]) {
  const warn = vi.fn();
  const slice = parseSlice({ metadata: METADATA, nodeName: "n1", clients }, { warn });
  return { slice, warn };
}

test("an entry belongs to its slice and its pod", () => {
  const { slice, warn } = parse([ENTRY]);
  expect(slice).toEqual({
    metadata: METADATA,
    entries: [
      {
        id: "slice-1/pod-1",
        namespace: "default",
        addresses: ["10.244.1.2", "fd00:244::2"],
        addedAt: "2026-01-01T00:00:00Z",
      },
    ],
  });
  expect(warn).not.toHaveBeenCalled();
});

test("spellings of one IPv6 address are one address", () => {
  const { slice } = parse([{ ...ENTRY, addresses: ["FD00:244:0:0::00a2"] }]);
  expect(slice.entries[0]?.addresses).toEqual(["fd00:244::a2"]);
});

test.each([
  ["an address that is none", { ...ENTRY, addresses: ["10.244.1.300"] }, "10.244.1.300"],
  ["an address with a zone", { ...ENTRY, addresses: ["fe80::1%eth0"] }, "fe80::1%eth0"],
  ["an IPv4 address in IPv6's spelling", { ...ENTRY, addresses: ["::ffff:10.1.2.3"] }, "::ffff:10.1.2.3"],
  ["the address of no IPv4 host", { ...ENTRY, addresses: ["0.0.0.0"] }, "0.0.0.0"],
  ["the address of no IPv6 host", { ...ENTRY, addresses: ["10.244.1.2", "0::0"] }, "::"],
  ["no addresses", { ...ENTRY, addresses: [] }, "addresses"],
  ["no namespace", { ...ENTRY, namespace: undefined }, "namespace"],
  ["no UID", { ...ENTRY, uid: 7 }, "uid"],
  ["a UID of other characters", { ...ENTRY, uid: "pod 1" }, "uid"],
  ["a UID that is too long", { ...ENTRY, uid: "1".repeat(84) }, "uid"],
  ["no time", { ...ENTRY, addedAt: undefined }, "addedAt"],
  ["nothing", null, "expected object"],
])(
  "an entry with %s is left out with a warning that names the slice; the others hold",
  (_, entry, reason) => {
    const { slice, warn } = parse([entry, ENTRY]);
    expect(slice.entries.map(({ id }) => id)).toEqual(["slice-1/pod-1"]);
    expect(warn).toHaveBeenCalledExactlyOnceWith(
      { slice: "egress-n1", node: "n1", index: 0, reason: expect.stringContaining(reason) },
      expect.any(String),
    );
  },
);
