import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { KubeError } from "../error.ts";
import { selfSigned } from "../testing/self-signed.ts";
import { silentLogger } from "../testing/silent-logger.ts";
import type { Credentials } from "./credentials.ts";
import { createTransport, type SentRequest } from "./https-transport.ts";
import type { Transport } from "./transport.ts";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

let cert: string;
let key: string;
let server: Server | undefined;
let transport: Transport;
let credentials: Credentials;

beforeAll(async () => {
  ({ cert, key } = await selfSigned());
});

afterEach(() => {
  vi.useRealTimers();
  transport.close();
  server?.closeAllConnections();
  server?.close();
});

/** Serves the answers one after the other, the last one for ever. */
async function serve(
  ...handlers: readonly [Handler, ...Handler[]]
): Promise<{ requests: IncomingMessage[]; told: SentRequest[] }> {
  const requests: IncomingMessage[] = [];
  const told: SentRequest[] = [];
  server = createServer({ cert, key }, (request, response) => {
    requests.push(request);
    (handlers[requests.length - 1] ?? handlers.at(-1))?.(request, response);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo;
  const authentication = { tls: { ca: cert }, authorization: "Bearer abc" };
  credentials = {
    server: new URL(`https://127.0.0.1:${port}/behind/a/gateway/`),
    read: () => Promise.resolve(authentication),
    invalidate: () => undefined,
  };
  transport = createTransport({
    credentials,
    logger: silentLogger,
    userAgent: "gardener/1.0",
    onRequest: (request) => told.push(request),
  });
  return { requests, told };
}

const answer =
  (status: number, body: unknown, headers: Record<string, string> = {}): Handler =>
  (_, response) =>
    void response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));

const GET = { method: "GET", path: "/api/v1/pods" } as const;

test("a request carries path, query, credentials and the program's name", async () => {
  const { requests } = await serve(answer(200, { ok: true }));
  await transport.request({ ...GET, query: { labelSelector: "a=b,c", limit: 5, watch: undefined } });
  expect(requests[0]?.url).toBe("/behind/a/gateway/api/v1/pods?labelSelector=a%3Db%2Cc&limit=5");
  expect(requests[0]?.headers).toMatchObject({ authorization: "Bearer abc", "user-agent": "gardener/1.0" });
});

test.each([429, 503])(
  "after a %i with Retry-After the request is sent again when it was asked to",
  async (status) => {
    const { requests, told } = await serve(
      answer(status, {}, { "retry-after": "1" }),
      answer(200, { ok: true }),
    );
    const startedAt = performance.now();
    await expect(transport.request({ ...GET, method: "POST", body: {} })).resolves.toEqual({ ok: true });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(1_000);
    expect(requests).toHaveLength(2);
    expect(told).toEqual([status, 200].map((code) => ({ method: "POST", status: code })));
  },
);

test("a wait that is longer than the time limit is not begun: the caller learns of it", async () => {
  const { requests } = await serve(answer(429, {}, { "retry-after": "60" }));
  await expect(transport.request({ ...GET, timeoutMs: 500 })).rejects.toMatchObject({
    code: "TooManyRequests",
    retryAfterMs: 60_000,
  });
  expect(requests).toHaveLength(1);
});

test("a wait ends when the caller aborts", async () => {
  await serve(answer(429, {}, { "retry-after": "20" }));
  await expect(transport.request({ ...GET, signal: AbortSignal.timeout(100) })).rejects.toMatchObject({
    name: "TimeoutError",
  });
});

test("a failure of the apiserver without Retry-After is the caller's to decide about", async () => {
  const { requests } = await serve(answer(500, { message: "etcdserver: leader changed" }));
  await expect(transport.request(GET)).rejects.toMatchObject({ code: "InternalError", retryable: true });
  expect(requests).toHaveLength(1);
});

test("a GET that meets a connection that was just closed is sent again, a POST is not", async () => {
  const hangUp: Handler = (request) => void request.socket.destroy();
  await serve(answer(200, {}), hangUp, answer(200, { ok: true }), hangUp, answer(200, {}));
  await transport.request(GET);
  await expect(transport.request(GET)).resolves.toEqual({ ok: true });
  await expect(transport.request({ ...GET, method: "POST", body: {} })).rejects.toMatchObject({
    code: "Unreachable",
    retryable: true,
  });
});

/** Sends as many requests as there are connections for. None of them is answered before the signal is aborted. */
async function occupyAllConnections(signal: AbortSignal): Promise<{ requests: IncomingMessage[] }> {
  const { requests } = await serve((_, response) => {
    const end = () => response.writeHead(200).end("{}");
    if (signal.aborted) end();
    else signal.addEventListener("abort", end);
  });
  for (let i = 0; i < 16; i += 1) {
    void transport.request({ ...GET, method: "PATCH", body: {} }).catch(() => undefined);
  }
  await vi.waitFor(() => expect(requests).toHaveLength(16));
  return { requests };
}

test("a request that waits for a connection hears its time limit", async () => {
  const { requests } = await occupyAllConnections(new AbortController().signal);
  const waiting = transport.request({ ...GET, method: "POST", body: {}, timeoutMs: 200 });
  await expect(waiting).rejects.toMatchObject({ code: "Timeout", retryable: true });
  expect(requests).toHaveLength(16);
});

test("a request that waits for a connection hears its caller, and is never sent", async () => {
  const answered = new AbortController();
  const { requests } = await occupyAllConnections(answered.signal);
  const caller = new AbortController();
  const waiting = transport.request({ ...GET, method: "POST", body: {}, signal: caller.signal });
  const next = transport.request(GET);
  caller.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  answered.abort();
  await next;
  expect(requests.map(({ method }) => method)).not.toContain("POST");
});

test("one who waits to be told to come again holds no connection meanwhile", async () => {
  const busy = answer(429, {}, { "retry-after": "600" });
  const others = Array.from({ length: 15 }, () => busy);
  const { requests } = await serve(busy, ...others, answer(200, { ok: true }));
  const patient = new AbortController();
  for (let i = 0; i < 16; i += 1) {
    void transport.request({ ...GET, timeoutMs: 900_000, signal: patient.signal }).catch(() => undefined);
  }
  await vi.waitFor(() => expect(requests).toHaveLength(16));
  await expect(transport.request(GET)).resolves.toEqual({ ok: true });
  patient.abort();
});

test("what is asked right before a request is sent may keep it back, when it is sent again too", async () => {
  const { requests } = await serve(answer(429, {}, { "retry-after": "1" }), answer(200, {}));
  let mayBeSent = true;
  const beforeSend = () => {
    if (!mayBeSent) throw new KubeError("too late", { code: "NotLeading", retryable: true });
  };
  const request = transport.request({ ...GET, method: "PATCH", body: {}, beforeSend });
  await vi.waitFor(() => expect(requests).toHaveLength(1));
  mayBeSent = false;
  await expect(request).rejects.toThrow("too late");
  expect(requests).toHaveLength(1);
});

describe("while credentials cannot be read", () => {
  const never = () => new Promise<never>(() => undefined);

  test.each([
    ["request", () => transport.request({ ...GET, timeoutMs: 100 })],
    ["stream", () => transport.stream({ path: "/", idleTimeoutMs: 10_000, timeoutMs: 100 })],
  ])("a %s hears its time limit", async (_, send) => {
    await serve(answer(200, {}));
    credentials.read = never;
    await expect(send()).rejects.toMatchObject({ code: "Timeout", retryable: true });
  });

  test("a request hears its caller", async () => {
    await serve(answer(200, {}));
    credentials.read = never;
    const caller = new AbortController();
    const waiting = transport.request({ ...GET, signal: caller.signal });
    caller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });

  test("a request that needs others than the apiserver was sent hears its time limit", async () => {
    await serve((request, response) => {
      credentials.read = never;
      answer(401, {})(request, response);
    });
    await expect(transport.request({ ...GET, timeoutMs: 500 })).rejects.toMatchObject({ code: "Timeout" });
  });
});

test("an answer that is not JSON is an error that shows it", async () => {
  await serve(answer(200, "<html>welcome to the hotel wifi"));
  await expect(transport.request(GET)).rejects.toMatchObject({
    code: "InvalidResponse",
    message: expect.stringContaining("hotel wifi"),
  });
});

async function read(stream: AsyncIterable<Buffer>, times = Number.POSITIVE_INFINITY): Promise<string[]> {
  const chunks: string[] = [];
  for await (const chunk of stream) {
    chunks.push(chunk.toString());
    if (chunks.length >= times) break;
  }
  return chunks;
}

const begin: Handler = (_, response) => void response.writeHead(200).write("one");

test("a stream that falls silent ends with an error of that name", async () => {
  await serve(begin);
  const stream = await transport.stream({ path: "/", idleTimeoutMs: 100 });
  await expect(read(stream)).rejects.toMatchObject({ code: "Idle", retryable: true });
});

test("a slow reader is no silence", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { promise: answering, resolve } = Promise.withResolvers<ServerResponse>();
  await serve((_, response) => {
    response.writeHead(200).write("one");
    resolve(response);
  });
  const chunks: string[] = [];
  for await (const chunk of await transport.stream({ path: "/", idleTimeoutMs: 1000 })) {
    chunks.push(chunk.toString());
    if (chunks.length === 1) (await answering).end("two");
    vi.advanceTimersByTime(1500);
  }
  expect(chunks).toEqual(["one", "two"]);
});

test("a stream that is aborted ends with the reason", async () => {
  await serve(begin);
  const controller = new AbortController();
  const stream = await transport.stream({ path: "/", idleTimeoutMs: 10_000, signal: controller.signal });
  const reading = read(stream);
  controller.abort(new Error("enough"));
  await expect(reading).rejects.toThrow("enough");
});

test("to leave a stream closes its connection", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  await serve((request, response) => {
    request.socket.once("close", resolve);
    response.writeHead(200).write("one");
  });
  expect(await read(await transport.stream({ path: "/", idleTimeoutMs: 10_000 }), 1)).toEqual(["one"]);
  await promise;
});

test("a stream that asks for it is the last on its connection, also when it ends in good order", async () => {
  const { requests } = await serve(answer(200, {}));
  const lasting = { path: "/", idleTimeoutMs: 10_000 };
  await read(await transport.stream(lasting));
  await read(await transport.stream({ ...lasting, isLastOfConnection: true }));
  await read(await transport.stream(lasting));
  const [first, second, third] = requests.map(({ socket }) => socket);
  expect(second).toBe(first);
  expect(third).not.toBe(second);
});

test("a stream that breaks in the middle is an error, not an end", async () => {
  await serve((request, response) => {
    response.writeHead(200).write("one", () => request.socket.destroy());
  });
  const stream = await transport.stream({ path: "/", idleTimeoutMs: 10_000 });
  await expect(read(stream)).rejects.toMatchObject({ code: "Unreachable" });
});
