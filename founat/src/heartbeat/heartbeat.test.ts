import { createSocket } from "node:dgram";
import { once } from "node:events";
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import {
  decodeRequest,
  decodeResponse,
  encodeRequest,
  encodeResponse,
  groupKeys,
  MAX_DATAGRAM_BYTES,
} from "./codec.ts";
import { HeartbeatProber } from "./prober.ts";
import { HeartbeatResponder } from "./responder.ts";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function responder(values: Record<string, string>, host = "127.0.0.1"): Promise<number> {
  const responder = new HeartbeatResponder({ port: 0, host, value: (key) => values[key] });
  closers.push(() => responder.close());
  return responder.listen();
}

function prober(): HeartbeatProber {
  const prober = new HeartbeatProber();
  closers.push(() => prober.close());
  return prober;
}

describe("a probe", () => {
  test("returns the values that the gateway has, and leaves out those it has not", async () => {
    const port = await responder({ "uid-1": "7", "uid-2": "18446744073709551615" });
    const answer = await prober().probe("127.0.0.1", port, ["uid-1", "uid-2", "uid-3"], { timeoutMs: 5000 });
    expect(answer).toEqual(
      new Map([
        ["uid-1", "7"],
        ["uid-2", "18446744073709551615"],
      ]),
    );
  });

  test("without keys asks for life only", async () => {
    expect(await prober().probe("127.0.0.1", await responder({}), [], { timeoutMs: 5000 })).toEqual(
      new Map(),
    );
  });

  test("reaches a responder on all addresses over either family", async () => {
    const port = await responder({ a: "1" }, "::");
    for (const address of ["127.0.0.1", "::1"]) {
      expect(await prober().probe(address, port, ["a"], { timeoutMs: 5000 })).toEqual(new Map([["a", "1"]]));
    }
  });

  test("of more keys than one datagram holds returns them all", async () => {
    const values = Object.fromEntries(
      Array.from({ length: 100 }, (_, i) => [`${i}`.padStart(36, "0"), `${i}`]),
    );
    const answer = await prober().probe("127.0.0.1", await responder(values), Object.keys(values), {
      timeoutMs: 5000,
    });
    expect(answer).toEqual(new Map(Object.entries(values)));
  });

  test("that nobody answers is undefined, in time", async () => {
    const silent = createSocket("udp4").bind(0, "127.0.0.1");
    await once(silent, "listening");
    expect(
      await prober().probe("127.0.0.1", silent.address().port, ["a"], { timeoutMs: 50 }),
    ).toBeUndefined();
    silent.close();
  });

  test("ends when its signal is aborted", async () => {
    const signal = AbortSignal.abort();
    expect(await prober().probe("127.0.0.1", 9, ["a"], { timeoutMs: 60_000, signal })).toBeUndefined();
  });

  test("takes no answer with another nonce", async () => {
    const liar = createSocket("udp4").bind(0, "127.0.0.1");
    await once(liar, "listening");
    liar.on("message", (_, from) => {
      const request = { nonce: new Uint8Array(16), keys: ["a"] };
      liar.send(
        encodeResponse(request, () => "1"),
        from.port,
        from.address,
      );
    });
    expect(await prober().probe("127.0.0.1", liar.address().port, ["a"], { timeoutMs: 100 })).toBeUndefined();
    liar.close();
  });
});

describe("datagrams", () => {
  const key = fc.string({ maxLength: 40 });
  const nonce = fc.uint8Array({ minLength: 16, maxLength: 16 });

  test("are read as they were written, and an answer is as long as its question", () => {
    fc.assert(
      fc.property(
        nonce,
        fc.uniqueArray(key, { maxLength: 12 }),
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        (nonce, keys, value) => {
          const question = encodeRequest({ nonce, keys });
          const request = decodeRequest(question);
          expect(request?.keys).toEqual(keys);
          const answer = encodeResponse({ nonce, keys }, () => String(value));
          expect(answer.length).toBe(question.length);
          expect(decodeResponse(answer)?.values).toEqual(new Map(keys.map((key) => [key, String(value)])));
        },
      ),
    );
  });

  test("of any other content are ignored", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (noise) => {
        expect(decodeRequest(noise)).toBeUndefined();
        expect(decodeResponse(noise)).toBeUndefined();
      }),
    );
  });

  test("that are cut short or too long are ignored", () => {
    const whole = encodeRequest({ nonce: new Uint8Array(16), keys: ["abc", "def"] });
    for (let length = 0; length < whole.length; length++) {
      expect(decodeRequest(whole.subarray(0, length))).toBeUndefined();
    }
    expect(decodeRequest(Buffer.concat([whole, Buffer.of(0)]))).toBeUndefined();
  });

  test("are within the size that every path carries", () => {
    const keys = Array.from({ length: 500 }, (_, i) => `key-${i}`);
    const groups = groupKeys(keys);
    expect(groups.flat()).toEqual(keys);
    for (const group of groups) {
      expect(encodeRequest({ nonce: new Uint8Array(16), keys: group }).length).toBeLessThanOrEqual(
        MAX_DATAGRAM_BYTES,
      );
    }
  });
});
