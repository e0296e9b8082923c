import { once } from "node:events";
import { connect } from "node:net";
import { FUZZ_TIMEOUT_MS, fuzzBytes } from "@egress-nat/test/fuzz/bytes";
import { expect, test } from "vitest";
import { HealthServer } from "./health-server.ts";
import { createLogger } from "./logger.ts";
import { createRegistry } from "./registry.ts";

const REQUESTS = [
  "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n",
  "POST /metrics?a=b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
  "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nabc",
  "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
].map((text) => Buffer.from(text));

test("whatever bytes come, the server goes on to answer", { timeout: FUZZ_TIMEOUT_MS }, async () => {
  const server = new HealthServer({
    port: 0,
    host: "127.0.0.1",
    logger: createLogger({ name: "test", level: "silent" }),
    registry: createRegistry(),
    ready: () => ({ ok: true, reasons: [] }),
  });
  const port = await server.start();
  await fuzzBytes(REQUESTS, async (bytes) => {
    const socket = connect(port, "127.0.0.1")
      .on("error", () => undefined)
      .resume();
    socket.end(bytes);
    await once(socket, "close");
  });
  expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);
  await server.close();
});
