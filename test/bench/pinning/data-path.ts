import {
  Client,
  type ClientGateway,
  ForkServer,
  Gateway,
  kernelInNetns,
  prepareGatewayNetns,
} from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { egressBy, FOU_PORT } from "../egress.ts";
import { CLIENTS, GATEWAYS, PICKING, SERVED, SERVICE } from "./ends.ts";

// Runs in a virtual machine: makes all gateways and clients what they are.
const PEERS = [SERVICE, ...GATEWAYS].flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6]);
const destinations = ["0.0.0.0/0", "::/0"];
const clusterRanges = ["10.0.0.0/8", "fd00::/16"];
const logger = createLogger({ name: "bench", level: "warn" });
const forkServer = new ForkServer();

for (const { netns } of GATEWAYS) {
  const kernel = kernelIn(netns);
  await prepareGatewayNetns(kernel);
  const gateway = new Gateway(
    { port: FOU_PORT, sourcePortAuto: false, destinations, excluded: clusterRanges },
    { kernel, logger },
  );
  await gateway.init();
  await gateway.sync(CLIENTS.map(({ netns: id, ipv4, ipv6 }) => ({ id, addresses: [ipv4, ipv6] })));
}
await makeClient(SERVED.netns, [SERVICE]);
for (const { netns, gateways } of PICKING) await makeClient(netns, gateways);
forkServer.close();

async function makeClient(netns: string, gateways: readonly ClientGateway[]): Promise<void> {
  await new Client({ kernel: kernelIn(netns), logger }).apply({
    uplink: "eth0",
    clusterRanges,
    egresses: [egressBy(gateways, PEERS)],
  });
}

function kernelIn(netns: string) {
  return kernelInNetns(`/run/netns/${netns}`, { forkServer });
}
