import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { createLogger } from "@egress-nat/program";
import { FUZZ_TIMEOUT_MS, fuzzBytes } from "@egress-nat/test/fuzz/bytes";
import { expect, test } from "vitest";
import { AgentRequest } from "../cni/protocol.ts";
import { addRequest } from "../testing/add-request.ts";
import { AgentServer } from "./socket.ts";

const NEWLINE = 0x0a;

const REQUESTS = [
  addRequest({ addresses: ["10.1.0.2", "fd00::2"] }),
  { operation: "delete", records: ["c1:eth0:pods"] },
  { operation: "check", record: "c1:eth0:pods", netns: "/run/netns/c1", addresses: ["10.1.0.2"] },
].map((request) => Buffer.from(JSON.stringify(request)));

test("any line is a request, or gets the answer that it is none", {
  timeout: FUZZ_TIMEOUT_MS,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "egress-nat-server-"));
  const socketPath = join(folder, "agent.sock");
  const server = new AgentServer({
    socketPath,
    handler: async (request) => void AgentRequest.parse(request),
    logger: createLogger({ name: "test", level: "silent" }),
  });
  await server.start();
  await fuzzBytes(REQUESTS, async (bytes) => {
    const socket = connect(socketPath);
    socket.write(Buffer.concat([bytes, Buffer.of(NEWLINE)]));
    const reply = JSON.parse(await text(socket));
    expect(reply.ok || reply.message).toBeTruthy();
  });
  await server.close();
  rmSync(folder, { recursive: true });
});
