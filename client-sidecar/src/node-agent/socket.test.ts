import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AgentServer } from "./socket.ts";

let folder: string;
let socketPath: string;
let server: AgentServer;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "egress-nat-server-"));
  socketPath = join(folder, "agent.sock");
  const logger = createLogger({ name: "test", level: "silent" });
  server = new AgentServer({ socketPath, handler: async () => undefined, logger });
  await server.start();
});

afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

test("a line without end is refused, and what follows is not kept", async () => {
  // Longer than the longest string of V8: 512 MiB.
  const mebibyte = Buffer.alloc(1 << 20, "a");
  const line = Readable.from(
    (function* () {
      for (let i = 0; i < 600; i++) yield mebibyte;
    })(),
  );
  const socket = connect({ path: socketPath, allowHalfOpen: true });
  const reply = text(socket);
  await pipeline(line, socket);
  expect(JSON.parse(await reply)).toMatchObject({
    ok: false,
    message: expect.stringContaining("no complete line"),
  });
});

test("a request that is followed by more is answered", async () => {
  const socket = connect(socketPath);
  socket.write('{"operation":"delete","records":["c1:eth0:pods"]}\n{"operation":');
  expect(JSON.parse(await text(socket))).toEqual({ ok: true });
});
