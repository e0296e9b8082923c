import { createServer, type Server } from "node:net";
import type { AgentReply, AgentRequest } from "../cni/protocol.ts";

/** Answers every request on a real socket with the same reply, or breaks the connection where it has none. */
export class FakeAgent {
  readonly requests: AgentRequest[] = [];
  readonly #server: Server;

  private constructor(reply: AgentReply | "breaks") {
    this.#server = createServer((socket) => {
      let received = "";
      socket.setEncoding("utf8").on("data", (chunk: string) => {
        received += chunk;
        if (!received.endsWith("\n")) return;
        this.requests.push(JSON.parse(received));
        if (reply === "breaks") socket.destroy();
        else socket.end(`${JSON.stringify(reply)}\n`);
      });
    });
  }

  static async start(socketPath: string, reply: AgentReply | "breaks"): Promise<FakeAgent> {
    const agent = new FakeAgent(reply);
    await new Promise<void>((resolve) => agent.#server.listen(socketPath, resolve));
    return agent;
  }

  async close(): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
