/** The unix socket on which the CNI plugin reaches the agent. */

import { once } from "node:events";
import { chmodSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import type { Logger } from "@egress-nat/program";
import { CniError, CniErrorCode, messageOf } from "../cni/error.ts";
import { type AgentReply, AgentRequest } from "../cni/protocol.ts";

/** A pod's annotations are at most 256 KiB. */
const MAX_REQUEST_LENGTH = 1 << 20;

/**
 * Does what one request asks for. The signal is aborted when nobody waits for the answer any more.
 *
 * @throws CniError
 */
type Handler = (request: AgentRequest, signal: AbortSignal) => Promise<void>;

export interface ServerOptions {
  readonly socketPath: string;
  readonly handler: Handler;
  readonly logger: Logger;
}

/** Serves one request per connection: one JSON object and a newline each way. */
export class AgentServer {
  readonly #options: ServerOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#server = createServer((socket) => void this.#serve(socket));
  }

  /** Listens; a socket file that an agent left behind is replaced. */
  async start(): Promise<void> {
    const { socketPath } = this.#options;
    rmSync(socketPath, { force: true });
    await once(this.#server.listen(socketPath), "listening");
    this.#server.on("error", (err) => this.#options.logger.warn({ err }, "cannot accept a connection"));
    chmodSync(socketPath, 0o600);
  }

  /** Ends at once: who waits for an answer is told by the broken connection, and tries again. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server.close(), "close");
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #serve(socket: Socket): Promise<void> {
    const controller = new AbortController();
    this.#sockets.add(socket);
    socket.on("error", () => undefined); // "close" follows
    socket.on("close", () => {
      this.#sockets.delete(socket);
      controller.abort(new DOMException("the CNI plugin is gone", "AbortError"));
    });
    const line = await readLine(socket);
    const reply =
      line === undefined ? malformed("no complete line") : await this.#answer(line, controller.signal);
    socket.end(`${JSON.stringify(reply)}\n`);
  }

  async #answer(line: string, signal: AbortSignal): Promise<AgentReply> {
    const { handler, logger } = this.#options;
    const request = parseRequest(line, logger);
    if (request === undefined) return malformed("not what this version of the agent expects");
    try {
      await handler(request, signal);
      return { ok: true };
    } catch (error) {
      const fields = { ...concerned(request), operation: request.operation, err: error };
      if (error instanceof CniError) logger.warn(fields, "request failed");
      else if (signal.aborted) logger.info(fields, "request was given up by the CNI plugin");
      else logger.error(fields, "request failed unexpectedly");
      return failure(error);
    }
  }
}

/** What a request is about, for the log. */
function concerned(request: AgentRequest): object {
  switch (request.operation) {
    case "add":
    case "mention":
      return { pod: request.pod };
    case "check":
      return { record: request.record };
    case "delete":
      return { records: request.records };
  }
}

function parseRequest(line: string, logger: Logger): AgentRequest | undefined {
  try {
    return AgentRequest.parse(JSON.parse(line));
  } catch (err) {
    logger.warn({ err }, "cannot understand a request of the CNI plugin");
    return undefined;
  }
}

function readLine(socket: Socket): Promise<string | undefined> {
  return new Promise((resolve) => {
    let received = "";
    const onData = (chunk: string) => {
      received += chunk;
      const at = received.indexOf("\n");
      if (at < 0 && received.length <= MAX_REQUEST_LENGTH) return;
      // What follows is read, so that the end is seen, but not kept.
      socket.off("data", onData).resume();
      resolve(at < 0 ? undefined : received.slice(0, at));
    };
    socket.setEncoding("utf8").on("data", onData);
    socket.on("close", () => resolve(undefined));
    socket.on("end", () => resolve(undefined));
  });
}

function malformed(why: string): AgentReply {
  return {
    ok: false,
    code: CniErrorCode.decodingFailure,
    message: `the node agent cannot read the CNI plugin's request: ${why}`,
    details: "plugin and agent may be of different versions for a moment, while the agent is being upgraded",
  };
}

function failure(error: unknown): AgentReply {
  if (error instanceof CniError) {
    const { code, message, details } = error;
    return { ok: false, code, message, details };
  }
  return {
    ok: false,
    code: CniErrorCode.tryAgainLater,
    message: `the node agent failed: ${messageOf(error)}`,
    details: "the log of the node agent says more",
  };
}
