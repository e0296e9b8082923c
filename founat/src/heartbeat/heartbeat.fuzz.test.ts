import { fuzzBytes } from "@egress-nat/test/fuzz/bytes";
import { expect, test } from "vitest";
import { decodeRequest, decodeResponse, encodeRequest, encodeResponse } from "./codec.ts";

const nonce = new Uint8Array(16).fill(7);
const keys = ["uid-1", "", "x".repeat(128)];

test("any bytes are a request that is answered with as many bytes, or none of ours", () =>
  fuzzBytes([encodeRequest({ nonce, keys }), encodeRequest({ nonce, keys: [] })], (bytes) => {
    const request = decodeRequest(bytes);
    if (request === undefined) return;
    expect(encodeRequest(request)).toHaveLength(bytes.length);
    expect(encodeResponse(request, () => "18446744073709551615")).toHaveLength(bytes.length);
  }));

test("any bytes are a response, or none of ours", () =>
  fuzzBytes([encodeResponse({ nonce, keys }, (key) => String(key.length))], (bytes) => {
    for (const value of decodeResponse(bytes)?.values.values() ?? [])
      expect(value.length).toBeLessThanOrEqual(20);
  }));
