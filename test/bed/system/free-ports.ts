import { randomInt } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";

/** Below are ports of well-known programs. */
const FIRST_PORT = 10_000;

/** Where a kernel that nobody has told otherwise begins to take ports for connections. */
const USUAL_END = 32_768;

/**
 * TCP ports of an address that nothing listens on now. They are held together until all are known, so they differ. The
 * kernel gives none of them to a connection: else one could take the port of a server that is down for a while, even one
 * that asks for this very server.
 */
export async function freePorts(count: number, address = "127.0.0.1"): Promise<number[]> {
  const range = await readFile("/proc/sys/net/ipv4/ip_local_port_range", "utf8");
  const end = Math.max(Number(range.split(/\s/)[0]), USUAL_END);
  const held = new Map<number, Server>();
  while (held.size < count) {
    const port = randomInt(FIRST_PORT, end);
    const server = await listen(port, address);
    if (server !== undefined) held.set(port, server);
  }
  await Promise.all(Array.from(held.values(), (server) => new Promise((resolve) => server.close(resolve))));
  return [...held.keys()];
}

/** @returns nothing where the port is taken */
function listen(port: number, address: string): Promise<Server | undefined> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(undefined) : reject(error),
    );
    server.listen(port, address, () => resolve(server));
  });
}
