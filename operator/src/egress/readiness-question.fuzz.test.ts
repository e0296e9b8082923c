import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { FUZZ_TIMEOUT_MS, fuzzBytes } from "@egress-nat/test/fuzz/bytes";
import { expect, test } from "vitest";
import { askWhyNotReady } from "./readiness-question.ts";

const REASON = "net.ipv4.ip_forward is 0\n";

const ANSWERS = [
  `HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: ${REASON.length}\r\n\r\n${REASON}`,
  `HTTP/1.1 503 No\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n19\r\n${REASON}\r\n0\r\n\r\n`,
  `HTTP/1.0 503 No\r\ncontent-type: text/plain; charset=utf-8\r\n\r\n${REASON.repeat(100)}`,
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nabc",
  `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 No\r\nContent-Type: text/plain\r\n\r\n${REASON}`,
].map((text) => Buffer.from(text));

const never = new AbortController().signal;

test("whatever bytes answer, a reason is a line of printable text, and not long", {
  timeout: FUZZ_TIMEOUT_MS,
}, async () => {
  let answer: Uint8Array = new Uint8Array();
  const server = createServer((socket) => {
    socket
      .on("error", () => undefined)
      .resume()
      .end(answer);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  let reasons = 0;
  await fuzzBytes(ANSWERS, async (bytes) => {
    answer = bytes;
    const reason = await askWhyNotReady("127.0.0.1", never, port);
    if (!reason) return;
    reasons += 1;
    expect(reason).toMatch(/^[^\p{C}\p{Zl}\p{Zp}]{1,512}$/u);
  });
  expect(reasons).toBeGreaterThan(0);
  server.close();
});
