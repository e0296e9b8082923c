import { Client, Gateway, kernelInNetns, prepareGatewayNetns } from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { clientOf, FOU_PORT, gatewayOf } from "./paths.ts";

// Runs in a virtual machine: makes the client and the gateway of the path `product`.
const logger = createLogger({ name: "bench", level: "warn" });
const client = clientOf("product");
const gateway = gatewayOf("product");
const destinations = ["0.0.0.0/0", "::/0"];
const clusterRanges = ["10.1.0.0/16", "fd00:1::/32"];

const gatewayKernel = kernelInNetns(`/run/netns/${gateway.netns}`);
await prepareGatewayNetns(gatewayKernel);
const tunnelEnd = new Gateway(
  { port: FOU_PORT, sourcePortAuto: false, destinations, excluded: clusterRanges },
  { kernel: gatewayKernel, logger },
);
await tunnelEnd.init();
await tunnelEnd.sync([{ id: "client", addresses: [client.ipv4, client.ipv6] }]);

await new Client({ kernel: kernelInNetns(`/run/netns/${client.netns}`), logger }).apply({
  uplink: "eth0",
  clusterRanges,
  egresses: [
    {
      name: "bench/bench",
      destinations,
      excluded: [],
      gateways: [{ ipv4: gateway.ipv4, ipv6: gateway.ipv6 }],
      peers: [gateway.ipv4, gateway.ipv6],
      port: FOU_PORT,
      sourcePortAuto: false,
      originatingOnly: true,
    },
  ],
});
