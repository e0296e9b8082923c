import { Client, Gateway, kernelInNetns, prepareGatewayNetns } from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { egressBy, FOU_PORT } from "../egress.ts";
import { clientOf, gatewayOf, PATHS } from "./paths.ts";

// Runs in a virtual machine: `node main.js PATH CLIENTS` makes the client and the gateway of a path, and has the gateway
// know so many clients. It may run again.
const [name, clients] = process.argv.slice(2);
const path = PATHS.find((each) => each === name) ?? "product";
const logger = createLogger({ name: "bench", level: "warn" });
const client = clientOf(path);
const gateway = gatewayOf(path);
const others = Array.from({ length: Number(clients) - 1 }, (_, index) => ({
  id: `other-${index}`,
  addresses: [`10.200.${index >> 8}.${index & 255}`, `fd00:200::${(index + 1).toString(16)}`],
}));
const destinations = ["0.0.0.0/0", "::/0"];
const clusterRanges = ["10.1.0.0/16", "fd00:1::/32"];

const gatewayKernel = kernelInNetns(`/run/netns/${gateway.netns}`);
await prepareGatewayNetns(gatewayKernel);
const tunnelEnd = new Gateway(
  {
    ...{ port: FOU_PORT, sourcePortAuto: false, destinations, excluded: clusterRanges },
    backend: path === "iptables" ? "iptables" : "nftables",
  },
  { kernel: gatewayKernel, logger },
);
await tunnelEnd.init();
await tunnelEnd.sync([{ id: "client", addresses: [client.ipv4, client.ipv6] }, ...others]);

await new Client({ kernel: kernelInNetns(`/run/netns/${client.netns}`), logger }).apply({
  uplink: "eth0",
  clusterRanges,
  egresses: [egressBy([{ ipv4: gateway.ipv4, ipv6: gateway.ipv6 }], [gateway.ipv4, gateway.ipv6])],
});
