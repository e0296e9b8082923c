import type { AddressInfo } from "node:net";
import { createServer } from "node:net";

/** TCP ports of an address that nothing listens on now. They are held together until all are known, so they differ. */
export async function freePorts(count: number, address = "127.0.0.1"): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        server.listen(0, address, resolve);
      });
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
