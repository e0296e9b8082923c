import { isIP } from "node:net";
import { fuzzBytes } from "@egress-nat/test/fuzz/bytes";
import { expect, test } from "vitest";
import { ZodError } from "zod";
import { parseStoredEgress } from "./egress.ts";
import { parseSlice } from "./slice.ts";

const METADATA = { name: "internet", namespace: "egress", uid: "1", generation: 3, resourceVersion: "7" };

const EGRESS = {
  metadata: METADATA,
  spec: {
    destinations: ["0.0.0.0/0", "2000::/3"],
    excludedDestinations: ["192.0.2.0/24"],
    allowedNamespaces: { matchLabels: { team: "a" } },
    drainTimeoutSeconds: 30,
  },
  status: { allowedNamespaces: ["apps"], observedGeneration: 3 },
};

const SLICE = {
  metadata: METADATA,
  nodeName: "n1",
  clients: [
    {
      namespace: "apps",
      name: "web",
      uid: "2",
      addresses: ["10.244.1.2", "fd00::1"],
      addedAt: "2026-01-01T00:00:00Z",
    },
    {
      namespace: "apps",
      name: "db",
      uid: "3",
      addresses: ["::ffff:10.1.2.3"],
      addedAt: "2026-01-01T00:00:00Z",
    },
  ],
};

/** Bytes that are JSON, parsed; for others undefined, of which a reflector makes an error of the API's kind. */
function fromJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString());
  } catch {
    return undefined;
  }
}

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch (error) {
    expect(error).toBeInstanceOf(ZodError);
    return undefined;
  }
}

test("any JSON is an Egress, one that is not understood, or refused as none", () =>
  fuzzBytes([Buffer.from(JSON.stringify(EGRESS))], (bytes) => {
    parsed(() => parseStoredEgress(fromJson(bytes)));
  }));

test("any JSON is an EgressClientSlice whose clients have addresses, or refused as none", () =>
  fuzzBytes([Buffer.from(JSON.stringify(SLICE))], (bytes) => {
    const slice = parsed(() => parseSlice(fromJson(bytes), { warn: () => undefined }));
    for (const { addresses } of slice?.entries ?? []) {
      for (const address of addresses) expect(isIP(address)).not.toBe(0);
    }
  }));
