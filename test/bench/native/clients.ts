import { Client, type ClientConfig, type ClientGateway, ForkServer, kernelInNetns } from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { execa } from "execa";
import { Cleanup, interruptible } from "../cleanup.ts";
import { egressBy } from "../egress.ts";
import { withoutTunnels } from "./kernel.ts";

const logger = createLogger({ name: "bench", level: "warn" });
const forkServer = new ForkServer();

/** Names of network namespaces. */
export function clientNames(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `egress-nat-bench-${index}`);
}

export const CLUSTER_RANGES = ["10.244.0.0/16", "10.96.0.0/16", "fd00:244::/48", "fd00:96::/112"];

/** A client of the Internet. */
export function clientConfigOf(...gateways: readonly ClientGateway[]): ClientConfig {
  return {
    uplink: "eth0",
    clusterRanges: CLUSTER_RANGES,
    egresses: [egressBy(gateways, ["10.96.0.10", "10.244.2.9", "fd00:96::10", "fd00:244:2::9"])],
  };
}

export function clientIn(name: string): Client {
  return clientInNetns(netnsPath(name));
}

export function clientInNetns(path: string): Client {
  return new Client({ kernel: withoutTunnels(kernelInNetns(path, { forkServer })), logger });
}

export function netnsPath(name: string): string {
  return `/run/netns/${name}`;
}

/** Does something with the network namespaces of pods, and takes them away again. */
export function withPodNetworks<T>(names: readonly string[], work: () => Promise<T>): Promise<T> {
  return interruptible(async () => {
    await using _networks = new Cleanup(() => removePodNetworks(names));
    for (const name of names) await makePodNetwork(name);
    return await work();
  });
}

async function removePodNetworks(names: readonly string[]): Promise<void> {
  forkServer.close();
  const lines = names.map((name) => `netns del ${name}\n`);
  await execa("ip", ["-force", "-batch", "-"], { input: lines.join("") });
}

/** As a pod's network leaves it. */
async function makePodNetwork(name: string): Promise<void> {
  const host = [`netns add ${name}`, `link add eth0 netns ${name} type veth peer name node0 netns ${name}`];
  const pod = [
    ...["lo", "eth0", "node0"].map((device) => `link set ${device} up`),
    "address add 10.244.1.7/24 dev eth0",
    "address add fd00:244:1::7/64 dev eth0 nodad",
    "route add default via 10.244.1.1",
    "route add default via fd00:244:1::1",
  ];
  await execa("ip", ["-batch", "-"], { input: host.map((line) => `${line}\n`).join("") });
  await execa("ip", ["-n", name, "-batch", "-"], { input: pod.map((line) => `${line}\n`).join("") });
}
