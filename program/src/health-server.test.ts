import { afterEach, beforeEach, expect, test } from "vitest";
import { type Check, HealthServer } from "./health-server.ts";
import { createLogger } from "./logger.ts";
import { createRegistry } from "./registry.ts";

const logger = createLogger({ name: "test", level: "silent" });

let ready: Check;
let live: Check;
let server: HealthServer;
let url: string;

beforeEach(async () => {
  ready = { ok: true, reasons: [] };
  live = { ok: true, reasons: [] };
  server = new HealthServer({
    port: 0,
    host: "127.0.0.1",
    logger,
    registry: createRegistry(),
    live: () => live,
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

test("a program that is stuck is not alive", async () => {
  live = { ok: false, reasons: ["no progress for 60 s"] };
  expect((await fetch(`${url}/healthz?verbose`)).status).toBe(503);
});

test("metrics include those of the process", async () => {
  const response = await fetch(`${url}/metrics`);
  expect(response.headers.get("content-type")).toContain("text/plain");
  expect(await response.text()).toContain("process_resident_memory_bytes");
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
