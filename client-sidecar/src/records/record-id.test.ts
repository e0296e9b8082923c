import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRecordId, recordId, shortened } from "./record-id.ts";

describe("the name of a client's record", () => {
  const attachment = fc.record({
    network: fc.string({ unit: "grapheme" }),
    containerId: fc.stringMatching(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,63}$/),
    ifname: fc.stringMatching(/^[a-zA-Z0-9_.@-]{1,15}$/),
  });

  it("is a file's, and holds the whole attachment, whatever the network is called", () => {
    fc.assert(
      fc.property(attachment, (given) => {
        const id = recordId(given);
        expect(id).toMatch(/^[a-zA-Z0-9][^/\0]*$/);
        expect(parseRecordId(id)).toEqual({ ...given, network: shortened(given.network) });
      }),
    );
  });

  it("is short enough for a file, however long the names are, and tells them apart", () => {
    const long = "c".repeat(300);
    const given = { containerId: `${long}1`, ifname: "eth0123456789ab", network: "é".repeat(200) };
    const id = recordId(given);
    expect(Buffer.byteLength(id)).toBeLessThan(230);
    expect(id).not.toBe(recordId({ ...given, containerId: `${long}2` }));
    expect(parseRecordId(id)).toEqual({
      ifname: given.ifname,
      containerId: shortened(given.containerId),
      network: shortened(given.network),
    });
  });

  it("is that of the container alone where an earlier version has kept no network", () => {
    expect(recordId({ containerId: "c0ffee", ifname: "eth0" })).toBe("c0ffee");
    expect(parseRecordId("c0ffee")).toEqual({ containerId: "c0ffee" });
  });

  it("may be nobody's", () => {
    fc.assert(fc.property(fc.string(), (id) => void parseRecordId(id)));
    expect(parseRecordId("c:eth0:%zz")).toEqual({ containerId: "c", ifname: "eth0", network: "%zz" });
  });
});
