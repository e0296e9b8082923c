import { CniError, CniErrorCode } from "./error.ts";
import { host } from "./host.ts";
import { isObject, parseJson } from "./json.ts";
import type { AgentReply, AgentRequest } from "./protocol.ts";

/**
 * Asks the node agent.
 *
 * @param socketPath of the agent's unix socket
 * @param timeoutMs for the whole exchange
 * @throws Error when it does not answer in time: it is not there, or hangs; what it was asked may or may not be done
 * @throws CniError as the agent says
 */
export function callAgent(socketPath: string, request: AgentRequest, timeoutMs: number): void {
  const reply = parseReply(host.ask(socketPath, `${JSON.stringify(request)}\n`, timeoutMs));
  if (!reply.ok) throw new CniError(reply.code, reply.message, reply.details);
}

/** @throws CniError for what is no reply */
export function parseReply(line: string): AgentReply {
  const value = parseJson(line, () => `the node agent's answer is not JSON: ${line}`);
  if (isObject(value) && value.ok === true) return { ok: true };
  if (isObject(value) && typeof value.code === "number" && typeof value.message === "string") {
    const { code, message, details } = value;
    return { ok: false, code, message, details: typeof details === "string" ? details : undefined };
  }
  throw new CniError(CniErrorCode.decodingFailure, `the node agent's answer is malformed: ${line}`);
}
