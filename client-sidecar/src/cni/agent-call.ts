import type { Socket } from "node:net";
import { CniError, CniErrorCode } from "./error.ts";
import { isObject } from "./json.ts";
import type { AgentReply, AgentRequest } from "./protocol.ts";

/** No reply of the agent is longer; whatever sends more is not the agent. */
const MAX_REPLY_LENGTH = 65_536;

/** What to do where the agent is needed and not there. */
export const AGENT_REMEDY =
  "look at the agent of this node: kubectl get pods -A -o wide -l app.kubernetes.io/name=egress-nat,app.kubernetes.io/component=node-agent";

/** The agent did not answer: it is not there, or hangs. What it was asked may or may not be done. */
export class AgentUnreachable extends Error {
  override readonly name = "AgentUnreachable";
}

/**
 * Asks the node agent.
 *
 * @param socketPath of the agent's unix socket
 * @param timeoutMs for the whole exchange
 * @throws AgentUnreachable when it does not answer in time
 * @throws CniError as the agent says
 */
export async function callAgent(socketPath: string, request: AgentRequest, timeoutMs: number): Promise<void> {
  // Loaded only here: the plugin runs for every pod, most are no clients, and node:net costs milliseconds.
  const { connect } = await import("node:net");
  const line = await exchange(connect(socketPath), `${JSON.stringify(request)}\n`, timeoutMs);
  const reply = parseReply(line);
  if (!reply.ok) throw new CniError(reply.code, reply.message, reply.details);
}

function exchange(socket: Socket, line: string, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = "";
    const timer = setTimeout(() => fail(`no answer within ${timeoutMs / 1000} s`), timeoutMs);
    const end = () => {
      clearTimeout(timer);
      socket.destroy();
    };
    const fail = (reason: string) => {
      end();
      reject(new AgentUnreachable(reason));
    };
    socket.setEncoding("utf8");
    socket.on("connect", () => socket.write(line));
    socket.on("error", (error) => fail(error.message));
    socket.on("close", () => fail("the connection was closed before an answer came"));
    socket.on("data", (chunk: string) => {
      received += chunk;
      const at = received.indexOf("\n");
      if (at >= 0) {
        end();
        resolve(received.slice(0, at));
      } else if (received.length > MAX_REPLY_LENGTH) fail("the answer is too long");
    });
  });
}

function parseReply(line: string): AgentReply {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new CniError(
      CniErrorCode.decodingFailure,
      `the node agent's answer is not JSON: ${line}`,
      undefined,
      {
        cause,
      },
    );
  }
  if (isObject(value) && value.ok === true) return { ok: true };
  if (isObject(value) && typeof value.code === "number" && typeof value.message === "string") {
    const { code, message, details } = value;
    return typeof details === "string" ? { ok: false, code, message, details } : { ok: false, code, message };
  }
  throw new CniError(CniErrorCode.decodingFailure, `the node agent's answer is malformed: ${line}`);
}
