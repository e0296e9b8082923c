import type { Kernel } from "../kernel.ts";

const FORWARDING: Readonly<Record<string, string>> = {
  "net/ipv4/ip_forward": "1",
  "net/ipv6/conf/all/forwarding": "1",
  // Inner packets come from addresses that routes lead to the uplink for. Interfaces take the higher of `all` and
  // their own value, so this holds for tunnel links that are made later, too.
  "net/ipv4/conf/all/rp_filter": "2",
};

/**
 * Sets the sysctls that a gateway needs. They act in its network namespace only; in a container /proc/sys is read-only,
 * so somebody outside calls this (see {@link KernelOptions.sysctlRoot}).
 *
 * @param kernel the gateway's network namespace
 * @throws FounatError `kernel-command-failed`
 */
export async function prepareGatewayNetns(kernel: Kernel): Promise<void> {
  const links = JSON.parse(await kernel.exec("ip", ["-json", "link", "show"])) as { ifname: string }[];
  const acceptRa = links.map(({ ifname }) => `net/ipv6/conf/${ifname}/accept_ra`);
  const actual = await kernel.readSysctls([...acceptRa, ...Object.keys(FORWARDING)]);
  // With forwarding on, a router ignores router advertisements and drops the default route that it has from one,
  // unless told otherwise (2) before: https://docs.kernel.org/networking/ip-sysctl.html
  const keepRa = acceptRa.filter((path) => actual.get(path) === "1").map((path) => [path, "2"] as const);
  // Without IPv6 in the kernel there is nothing to set for it.
  const forwarding = Object.entries(FORWARDING).filter(
    ([path, value]) => actual.has(path) && actual.get(path) !== value,
  );
  const writes = Object.fromEntries([...keepRa, ...forwarding]);
  if (Object.keys(writes).length > 0) await kernel.run([{ sysctls: writes }]);
}
