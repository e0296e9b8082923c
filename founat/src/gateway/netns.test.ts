import { expect, test } from "vitest";
import type { Kernel } from "../kernel.ts";
import type { Step } from "../step.ts";
import { prepareGatewayNetns } from "./netns.ts";

const ADVERTISED = { dst: "default", gateway: "fe80::1", dev: "eth0", protocol: "ra", metric: 1024 };
const GLOBAL = { family: "inet6", scope: "global", local: "fd00:1::4", prefixlen: 64 };

/** The steps that prepare a namespace in which every sysctl has the value 1, as far as IPv6 goes. */
async function preparation(routes: readonly object[], address: object): Promise<readonly Step[]> {
  const taken: Step[][] = [];
  const outputs = [JSON.stringify([{ ifname: "eth0", addr_info: [address] }]), JSON.stringify(routes)];
  const kernel: Pick<Kernel, "run" | "readSysctls"> = {
    run: async (steps) => {
      taken.push([...steps]);
      return outputs;
    },
    readSysctls: async (paths) =>
      new Map(paths.filter((path) => path.startsWith("net/ipv6/conf/eth0")).map((path) => [path, "1"])),
  };
  await prepareGatewayNetns(kernel as Kernel);
  return taken[1] ?? [];
}

test("routers are not listened to any more before their first route and addresses become static", async () => {
  const routes = [ADVERTISED, { ...ADVERTISED, gateway: "fe80::bad" }];
  expect(await preparation(routes, { ...GLOBAL, dynamic: true })).toEqual([
    { sysctls: { "net/ipv6/conf/eth0/accept_redirects": "0", "net/ipv6/conf/eth0/accept_ra": "0" } },
    {
      file: "ip",
      args: ["-6", "-batch", "-"],
      input: [
        "route replace default via fe80::1 dev eth0 metric 1024 proto static",
        "address change fd00:1::4/64 dev eth0 valid_lft forever preferred_lft forever",
        "",
      ].join("\n"),
    },
  ]);
});

test("where a pod has an IPv6 address and no default route yet, routers may still tell one", async () => {
  expect(await preparation([], GLOBAL)).toEqual([
    { sysctls: { "net/ipv6/conf/eth0/accept_redirects": "0", "net/ipv6/conf/eth0/accept_ra": "2" } },
  ]);
});

test("a route that the runtime made stays as it is", async () => {
  expect(await preparation([{ ...ADVERTISED, protocol: "static" }], GLOBAL)).toEqual([
    { sysctls: { "net/ipv6/conf/eth0/accept_redirects": "0", "net/ipv6/conf/eth0/accept_ra": "0" } },
  ]);
});
