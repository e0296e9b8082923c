import { createSocket, type RemoteInfo } from "node:dgram";
import { once } from "node:events";
import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
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

function responder(values: Record<string, string>, host?: string): Promise<number> {
  return respondingBy((key) => values[key], host);
}

async function respondingBy(value: (key: string) => string | undefined, host = "127.0.0.1"): Promise<number> {
  const responder = new HeartbeatResponder({ port: 0, host, value });
  closers.push(() => responder.close());
  return responder.listen();
}

function answerTo(question: Buffer): Uint8Array {
  const request = decodeRequest(question);
  if (request === undefined) throw new Error("a question that cannot be read");
  return encodeResponse(request, () => "1");
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

  test("takes all answers that had come when its time was over, read or not", async () => {
    const end = new AbortController();
    const gateway = createSocket("udp4").bind(0, "127.0.0.1");
    closers.push(async () => void gateway.close());
    await once(gateway, "listening");
    const asked: [Buffer, RemoteInfo][] = [];
    gateway.on("message", (question, from) => {
      if (asked.push([question, from]) < 200) return;
      for (const [question, { port, address }] of asked) gateway.send(answerTo(question), port, address);
      setImmediate(() => end.abort());
    });
    const one = prober();
    const { port } = gateway.address();
    const probes = Array.from({ length: 200 }, () =>
      one.probe("127.0.0.1", port, ["a"], { timeoutMs: 60_000, signal: end.signal }),
    );
    expect(await Promise.all(probes)).toEqual(probes.map(() => new Map([["a", "1"]])));
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

describe("a responder", () => {
  async function ask(port: number, datagram: Uint8Array): Promise<Buffer> {
    const socket = createSocket("udp4");
    closers.push(async () => void socket.close());
    socket.send(datagram, port, "127.0.0.1");
    const [answer] = await once(socket, "message");
    return answer;
  }

  test("answers to a key that is no text, with as many bytes", async () => {
    const port = await responder({ ["\u00ff".repeat(128)]: "7" });
    const question = Buffer.concat([
      Buffer.from("EGHB\x01\x01\x00\x01", "latin1"),
      Buffer.alloc(16, "n"),
      Buffer.of(128, 255),
      Buffer.alloc(128, 255),
      Buffer.alloc(20),
    ]);
    const answer = await ask(port, question);
    expect(answer).toHaveLength(question.length);
    expect(decodeResponse(answer)?.values).toEqual(new Map([["\u00ff".repeat(128), "7"]]));
  });

  test("answers to one source only so often, and to others all the time", async () => {
    const port = await responder({});
    const request = encodeRequest({ nonce: new Uint8Array(16), keys: [] });
    const flooder = createSocket("udp4").bind(0, "127.0.0.2");
    closers.push(async () => void flooder.close());
    await once(flooder, "listening");
    let answers = 0;
    flooder.on("message", () => answers++);
    const startedAt = performance.now();
    for (let batch = 0; batch < 60; batch++) {
      for (let i = 0; i < 100; i++) flooder.send(request, port, "127.0.0.1");
      expect(await prober().probe("127.0.0.1", port, [], { timeoutMs: 5000 })).toEqual(new Map());
    }
    expect(answers).toBeGreaterThan(0);
    expect(answers).toBeLessThanOrEqual(2_000 + performance.now() - startedAt);
  });
});

test("a responder charges nobody for what is no request", async () => {
  const port = await responder({});
  const node = createSocket("udp4").bind(0, "127.0.0.2");
  closers.push(async () => void node.close());
  await once(node, "listening");
  let answers = 0;
  node.on("message", () => answers++);
  for (let batch = 0; batch < 40; batch++) {
    for (let i = 0; i < 100; i++) node.send("noise", port, "127.0.0.1");
    expect(await prober().probe("127.0.0.1", port, [], { timeoutMs: 5000 })).toEqual(new Map());
  }
  const request = encodeRequest({ nonce: new Uint8Array(16), keys: [] });
  for (let i = 0; i < 100; i++) node.send(request, port, "127.0.0.1");
  await vi.waitFor(() => expect(answers).toBe(100));
});

describe("datagrams", () => {
  const key = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString("latin1"));
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

  test("with a key of other characters than bytes are not made", () => {
    expect(() => encodeRequest({ nonce: new Uint8Array(16), keys: ["\u0100"] })).toThrow(RangeError);
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
