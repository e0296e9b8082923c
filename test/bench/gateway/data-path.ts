import { Gateway, kernelInNetns, prepareGatewayNetns } from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { FOU_PORT } from "../egress.ts";
import { clientOf, gatewayOf, otherClient } from "./topology.ts";

// Runs in a virtual machine: `node main.js CLIENTS` has the product's gateway know so many clients. It may run again.
const clients = Number(process.argv[2]);
const kernel = kernelInNetns(`/run/netns/${gatewayOf("product").netns}`);
await prepareGatewayNetns(kernel);
const gateway = new Gateway(
  {
    ...{ port: FOU_PORT, sourcePortAuto: false },
    destinations: ["0.0.0.0/0", "::/0"],
    excluded: ["10.0.0.0/8", "fd00::/16"],
  },
  { kernel, logger: createLogger({ name: "bench", level: "warn" }) },
);
await gateway.init();
const all = [clientOf("product"), ...Array.from({ length: clients - 1 }, (_, index) => otherClient(index))];
await gateway.sync(all.map(({ ipv4, ipv6 }, index) => ({ id: `client-${index}`, addresses: [ipv4, ipv6] })));
