import { createServer, type Server, type Socket } from "node:net";
import type { AgentReply, AgentRequest } from "../cni/protocol.ts";

/** Answers every request on a real socket with the same reply; or breaks the connection, or never says a word. */
export class FakeAgent {
  readonly requests: AgentRequest[] = [];
  readonly #server: Server;

  readonly #sockets = new Set<Socket>();

  private constructor(reply: AgentReply | "breaks" | "hangs") {
    this.#server = createServer((socket) => {
      let received = "";
      this.#sockets.add(socket);
      socket.setEncoding("utf8").on("data", (chunk: string) => {
        received += chunk;
        if (!received.endsWith("\n")) return;
        this.requests.push(JSON.parse(received));
        if (reply === "breaks") socket.destroy();
        else if (reply !== "hangs") socket.end(`${JSON.stringify(reply)}\n`);
      });
    });
  }

  static async start(socketPath: string, reply: AgentReply | "breaks" | "hangs"): Promise<FakeAgent> {
    const agent = new FakeAgent(reply);
    await new Promise<void>((resolve) => agent.#server.listen(socketPath, resolve));
    return agent;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
