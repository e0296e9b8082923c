import { CniError, CniErrorCode } from "./error.ts";
import { isObject } from "./json.ts";
import type { AgentReply, AgentRequest } from "./protocol.ts";

/** No reply of the agent is longer; whatever sends more is not the agent. */
const MAX_REPLY_LENGTH = 65_536;

/** What to do where the agent is needed and not there. */
export const AGENT_REMEDY =
  "look at the agent of this node: kubectl get pods -A -o wide -l app.kubernetes.io/name=egress-nat,app.kubernetes.io/component=node-agent";

/**
 * Of Bun, which runs the plugin, what is used here (https://bun.com/docs/runtime/networking/tcp): to load its node:net
 * costs a client's pod more than the exchange.
 */
declare const Bun: {
  connect(options: { readonly unix: string; readonly socket: SocketHandler }): Promise<unknown>;
};

interface SocketHandler {
  open(socket: Socket): void;
  drain(socket: Socket): void;
  data(socket: Socket, chunk: Uint8Array): void;
  error(socket: Socket, error: Error): void;
  close(): void;
}

interface Socket {
  /** @returns how many bytes it took; it is ready for more when drained */
  write(bytes: Uint8Array): number;
}

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
  const line = await exchange(socketPath, `${JSON.stringify(request)}\n`, timeoutMs);
  const reply = parseReply(line);
  if (!reply.ok) throw new CniError(reply.code, reply.message, reply.details);
}

function exchange(socketPath: string, line: string, timeoutMs: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const fail = (reason: string) => reject(new AgentUnreachable(reason));
  const timer = setTimeout(() => fail(`no answer within ${timeoutMs / 1000} s`), timeoutMs);
  let unsent: Uint8Array = new TextEncoder().encode(line);
  const send = (socket: Socket) => {
    unsent = unsent.subarray(socket.write(unsent));
  };
  const decoder = new TextDecoder();
  let received = "";
  const socket: SocketHandler = {
    open: send,
    drain: send,
    data: (_, chunk) => {
      received += decoder.decode(chunk, { stream: true });
      const at = received.indexOf("\n");
      if (at >= 0) resolve(received.slice(0, at));
      else if (received.length > MAX_REPLY_LENGTH) fail("the answer is too long");
    },
    error: (_, error) => fail(error.message),
    close: () => fail("the connection was closed before an answer came"),
  };
  Bun.connect({ unix: socketPath, socket }).catch(({ message, code }: NodeJS.ErrnoException) =>
    fail(`${message}, ${code}`),
  );
  return promise.finally(() => clearTimeout(timer));
}

/** @throws CniError for what is no reply */
export function parseReply(line: string): AgentReply {
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
