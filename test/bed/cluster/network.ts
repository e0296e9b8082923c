import { exists } from "@egress-nat/tools/system/cache";
import { execa } from "execa";
import { ipBatch, netnsPath } from "../system/network-namespace.ts";
import type { ClusterPlan, Leg } from "./plan.ts";

// A gateway's SNAT and the low-MTU leg must be seen to deal with a router that routes and does nothing else.
const ROUTER_SYSCTLS = {
  "net.ipv4.ip_forward": "1",
  "net.ipv6.conf.all.forwarding": "1",
  "net.ipv6.conf.default.accept_dad": "0",
  "net.ipv6.conf.all.accept_dad": "0",
};

/** The `ip` commands that make the cluster's side: the bridge of the nodes, a tap for each, and the legs outwards. */
export function clusterSide(plan: ClusterPlan): readonly string[] {
  const { bridge, gateway, nodes, internet } = plan;
  return [
    "link set lo up",
    `link add ${bridge} type bridge`,
    `link set ${bridge} up`,
    `address add ${gateway.ipv4}/24 dev ${bridge}`,
    `address add ${gateway.ipv6}/64 dev ${bridge} nodad`,
    ...nodes.flatMap(({ tap }) => [
      `tuntap add ${tap} mode tap`,
      `link set ${tap} master ${bridge}`,
      `link set ${tap} up`,
    ]),
    ...internet.legs.flatMap((leg) => [
      `link add ${leg.name} mtu ${leg.mtuBytes} type veth peer name ${leg.name}-out mtu ${leg.mtuBytes} netns ${internet.netns}`,
      `link set ${leg.name} up`,
      `address add ${leg.near.ipv4}/30 dev ${leg.name}`,
      `address add ${leg.near.ipv6}/64 dev ${leg.name} nodad`,
      ...leg.addresses.map((address) => `route add ${address} via ${farOf(leg, address)}`),
    ]),
  ];
}

/** The `ip` commands of the internet's side. Whatever leaves a leg's address goes back over that leg. */
export function internetSide(plan: ClusterPlan): readonly string[] {
  return [
    "link set lo up",
    ...plan.internet.legs.flatMap((leg, index) => {
      const device = `${leg.name}-out`;
      const table = tableOf(index);
      return [
        `link set ${device} up`,
        `address add ${leg.far.ipv4}/30 dev ${device}`,
        `address add ${leg.far.ipv6}/64 dev ${device} nodad`,
        ...leg.addresses.map(
          (address) => `address add ${address} dev lo${address.includes(":") ? " nodad" : ""}`,
        ),
        `route add default via ${leg.near.ipv4} table ${table}`,
        `route add default via ${leg.near.ipv6} table ${table}`,
        ...(index === 0
          ? [`route add default via ${leg.near.ipv4}`, `route add default via ${leg.near.ipv6}`]
          : []),
      ];
    }),
  ];
}

/** The `ip rule` commands of the internet's side for one family: ip-rule(8) does not tell it from the address. */
export function internetRules(plan: ClusterPlan, family: "ipv4" | "ipv6"): readonly string[] {
  return plan.internet.legs.flatMap((leg, index) =>
    leg.addresses
      .filter((address) => address.includes(":") === (family === "ipv6"))
      .map((address) => `rule add from ${address} lookup ${tableOf(index)}`),
  );
}

function tableOf(leg: number): number {
  return 100 + leg;
}

/** The `ip` commands that lead to the pods of a node, for the cluster's namespace and for the other nodes. */
export function podRoutes(
  node: { ipv4: string; ipv6: string },
  podCidrs: readonly string[],
): readonly string[] {
  return podCidrs.map((cidr) => `route replace ${cidr} via ${cidr.includes(":") ? node.ipv6 : node.ipv4}`);
}

/** Makes both namespaces of a cluster. Neither has a way out of the machine. */
export async function createNetwork(plan: ClusterPlan): Promise<void> {
  for (const name of [plan.netns, plan.internet.netns]) await execa("ip", ["netns", "add", name]);
  await setSysctls(plan.netns);
  await setSysctls(plan.internet.netns);
  await ipBatch(netnsPath(plan.netns), clusterSide(plan));
  const internet = netnsPath(plan.internet.netns);
  await ipBatch(internet, internetSide(plan));
  await ipBatch(internet, internetRules(plan, "ipv4"), "-4");
  await ipBatch(internet, internetRules(plan, "ipv6"), "-6");
}

/** Removes both namespaces and whatever still runs in them; succeeds when there is nothing. */
export async function removeNetwork(plan: ClusterPlan): Promise<void> {
  for (const name of [plan.netns, plan.internet.netns]) {
    if (!(await exists(netnsPath(name)))) continue;
    const { stdout } = await execa("ip", ["netns", "pids", name]);
    for (const pid of stdout.split("\n").filter((line) => line !== "")) kill(Number(pid));
    await execa("ip", ["netns", "delete", name]);
  }
}

// A process may end by itself between the list and the signal.
function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function setSysctls(netns: string): Promise<void> {
  const settings = Object.entries(ROUTER_SYSCTLS).map(([name, value]) => `${name}=${value}`);
  await execa("nsenter", [`--net=${netnsPath(netns)}`, "--", "sysctl", "--quiet", "--write", ...settings]);
}

function farOf(leg: Leg, address: string): string {
  return address.includes(":") ? leg.far.ipv6 : leg.far.ipv4;
}
