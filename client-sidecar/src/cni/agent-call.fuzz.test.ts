import { fuzzBytes } from "@egress-nat/test/fuzz/bytes";
import { expect, test } from "vitest";
import { parseReply } from "./agent-call.ts";
import { CniError } from "./error.ts";
import type { AgentReply } from "./protocol.ts";

const REPLIES = [
  { ok: true },
  { ok: false, code: 11, message: "Egress internet/nat does not exist" },
  { ok: false, code: 100, message: "it has no address", details: "look at the other plugins" },
].map((reply) => Buffer.from(JSON.stringify(reply)));

test("any line is a reply, or an error that the container runtime can be told", () =>
  fuzzBytes(REPLIES, (bytes) => {
    let reply: AgentReply;
    try {
      reply = parseReply(new TextDecoder().decode(bytes));
    } catch (error) {
      expect(error).toBeInstanceOf(CniError);
      return;
    }
    if (reply.ok) return;
    const { code, message, details = "" } = reply;
    expect([typeof code, typeof message, typeof details]).toEqual(["number", "string", "string"]);
  }));
