import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { Gauge } from "prom-client";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Check, HealthServer } from "./health-server.ts";
import { createLogger } from "./logger.ts";
import { createRegistry } from "./registry.ts";

const logger = createLogger({ name: "test", level: "silent" });

let ready: Check;
let server: HealthServer;
let url: string;

beforeEach(async () => {
  ready = { ok: true, reasons: [] };
  server = new HealthServer({
    port: 0,
    host: "127.0.0.1",
    logger,
    registry: createRegistry(),
    ready: () => ready,
  });
  url = `http://127.0.0.1:${await server.start()}`;
});

afterEach(() => server.close());

test("it is ready when the program says so", async () => {
  const response = await fetch(`${url}/readyz`);
  expect([response.status, await response.text()]).toEqual([200, "ok\n"]);
});

test("what is missing is in the answer, one reason per line", async () => {
  ready = { ok: false, reasons: ["no gateway yet", "slices are not synced"] };
  const response = await fetch(`${url}/readyz`);
  expect([response.status, await response.text()]).toEqual([503, "no gateway yet\nslices are not synced\n"]);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});

test("a program that answers is alive", async () => {
  expect((await fetch(`${url}/healthz?verbose`)).status).toBe(200);
});

test("metrics include those of the process", async () => {
  const response = await fetch(`${url}/metrics`);
  expect(response.headers.get("content-type")).toContain("text/plain");
  expect(await response.text()).toContain("process_resident_memory_bytes");
});

test("metrics are gathered once a second at most, however many ask", async () => {
  let gathered = 0;
  const registry = createRegistry();
  new Gauge({ name: "gatherings", help: "Times.", registers: [registry], collect: () => void gathered++ });
  const busy = new HealthServer({ port: 0, host: "127.0.0.1", logger, registry, ready: () => ready });
  const metrics = `http://127.0.0.1:${await busy.start()}/metrics`;
  const startedAt = performance.now();
  const answers = await Promise.all(Array.from({ length: 50 }, () => fetch(metrics).then((r) => r.text())));
  expect(answers.every((answer) => answer.includes("gatherings"))).toBe(true);
  expect(gathered).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / 1000);
  await busy.close();
});

test("any other path is not found, and says what is", async () => {
  const response = await fetch(url);
  expect([response.status, await response.text()]).toEqual([
    404,
    "not found: try /healthz, /readyz or /metrics\n",
  ]);
});

test("a check that throws is a failure, not the end of the program", async () => {
  const broken = new HealthServer({
    port: 0,
    host: "127.0.0.1",
    logger,
    registry: createRegistry(),
    ready: () => {
      throw new Error("bug");
    },
  });
  const port = await broken.start();
  expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(500);
  await broken.close();
});

test("a port that is taken is an error of start", async () => {
  const port = Number(new URL(url).port);
  const other = new HealthServer({
    port,
    host: "127.0.0.1",
    logger,
    registry: createRegistry(),
    ready: () => ready,
  });
  await expect(other.start()).rejects.toMatchObject({ code: "EADDRINUSE" });
});

describe("connections", () => {
  const sockets: Socket[] = [];
  const port = () => Number(new URL(url).port);

  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  /** Silent connections from an address of this machine. */
  async function hold(count: number, localAddress: string): Promise<Socket[]> {
    const held = Array.from({ length: count }, () =>
      connect({ port: port(), host: "127.0.0.1", localAddress }),
    );
    sockets.push(...held);
    for (const socket of held) socket.on("error", () => undefined).resume();
    await Promise.all(held.map((socket) => once(socket, "connect")));
    return held;
  }

  const ask = (socket: Socket, path = "/readyz") => {
    socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
    return text(socket);
  };

  test("of one source that holds all it can take no place from others", async () => {
    const [scrape] = await hold(1, "127.0.0.3");
    const held: Socket[] = [];
    for (let batch = 0; batch < 5; batch++) held.push(...(await hold(200, "127.0.0.2")));
    const left = () => held.filter(({ closed }) => !closed).length;
    await vi.waitFor(() => expect(left()).toBe(255), { timeout: 20_000 });
    for (let probe = 0; probe < 20; probe++) {
      const [socket] = await hold(1, "127.0.0.1");
      expect(await ask(socket as Socket)).toContain("HTTP/1.1 200 OK");
    }
    // It was there before all of these, and speaks only now.
    expect(await ask(scrape as Socket, "/metrics")).toContain("process_resident_memory_bytes");
  });

  test("of as many sources as there are places give way to the next", async () => {
    for (let source = 2; source < 255; source++) await hold(1, `127.0.1.${source}`);
    for (let source = 2; source < 255; source++) await hold(1, `127.0.2.${source}`);
    const [socket] = await hold(1, "127.0.0.1");
    expect(await ask(socket as Socket)).toContain("HTTP/1.1 200 OK");
  });

  test("carry one request each", async () => {
    const [socket] = await hold(1, "127.0.0.1");
    socket?.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n".repeat(3));
    const answers = await text(socket as Socket);
    expect(answers.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(1);
    expect(answers).toContain("connection: close");
  });
});
