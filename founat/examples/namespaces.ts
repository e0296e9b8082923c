/**
 * The whole data path on one machine, without Kubernetes: four network namespaces play the parts.
 *
 *     client 10.1.1.2 ---+
 *                        +--- router ---- target 192.0.2.2, 2001:db8::2
 *     gateway 10.1.2.2 --+
 *
 * Needs root, and a kernel with fou, fou6, ipip, ip6_tunnel and nftables. Prints what the target sees of the client,
 * before, with and after egress NAT; on a kernel without IPv6 for IPv4 alone.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { Client, Gateway, kernelHere, kernelInNetns, prepareGatewayNetns } from "@egress-nat/founat";

const run = promisify(execFile);
const logger = { debug: () => {}, info: () => {}, warn: console.warn };
const PORT = 7;

const hasIpv6 = existsSync("/proc/net/if_inet6");

interface Addresses {
  readonly ipv4: string;
  readonly ipv6?: string;
}

function addresses(ipv4: string, ipv6: string): Addresses {
  return hasIpv6 ? { ipv4, ipv6 } : { ipv4 };
}

const pods = {
  client: addresses("10.1.1.2", "fd00:1::2"),
  gateway: addresses("10.1.2.2", "fd00:2::2"),
  target: addresses("192.0.2.2", "2001:db8::2"),
};
const names = ["router", ...Object.keys(pods)];

/** Each pod hangs on a link of its own, as with a routed CNI. */
async function connect(name: string, { ipv4, ipv6 }: Addresses): Promise<void> {
  const first = (address: string) => address.replace(/2$/, "1");
  const only6 = (line: (address: string) => string) => (ipv6 === undefined ? [] : [line(ipv6)]);
  const lines = (...list: string[]) => ({ file: "ip", args: ["-batch", "-"], input: list.join("\n") });
  await kernelHere().run([lines(`link add eth0 netns ${name} type veth peer name ${name} netns router`)]);
  await kernelInNetns("/run/netns/router").run([
    lines(
      `link set ${name} up`,
      `address add ${first(ipv4)}/24 dev ${name}`,
      ...only6((address) => `address add ${first(address)}/64 dev ${name} nodad`),
    ),
  ]);
  await kernelInNetns(`/run/netns/${name}`).run([
    lines(
      "link set lo up",
      "link set eth0 up",
      `address add ${ipv4}/24 dev eth0`,
      `route add default via ${first(ipv4)}`,
      ...only6((address) => `address add ${address}/64 dev eth0 nodad`),
      ...only6((address) => `route add default via ${first(address)}`),
    ),
  ]);
}

const SERVER = `
  require("node:net").createServer((socket) => socket.end(socket.remoteAddress.replace("::ffff:", "")))
    .listen(${PORT}, () => console.log("ready"))`;

const CLIENT = `
  require("node:net").connect(${PORT}, process.argv[1]).on("data", (data) => process.stdout.write(data))
    .on("error", (error) => process.stdout.write(error.code))`;

/** What the target answers to the client: the address it saw. */
async function ask(address: string): Promise<string> {
  const { stdout } = await run("ip", ["netns", "exec", "client", process.execPath, "-e", CLIENT, address]);
  return stdout;
}

async function show(when: string): Promise<void> {
  const answers = await Promise.all(Object.values(pods.target).map(ask));
  console.log(`${when}: ${answers.join(" ")}`);
}

const server = { stop: () => {} };
try {
  for (const name of names) await run("ip", ["netns", "add", name]);
  await kernelInNetns("/run/netns/router").run([
    { sysctls: { "net/ipv4/ip_forward": "1", ...(hasIpv6 && { "net/ipv6/conf/all/forwarding": "1" }) } },
  ]);
  for (const [name, own] of Object.entries(pods)) await connect(name, own);
  const target = execFile("ip", ["netns", "exec", "target", process.execPath, "-e", SERVER]);
  server.stop = () => target.kill();
  await new Promise((resolve) => target.stdout?.once("data", resolve));

  await show("without egress NAT the target sees");

  // The gateway: who may prepare its namespace, and who runs in it, need not be the same program.
  const inGateway = kernelInNetns("/run/netns/gateway");
  await prepareGatewayNetns(inGateway);
  const gateway = new Gateway(
    {
      port: 5555,
      sourcePortAuto: false,
      destinations: ["0.0.0.0/0", "::/0"],
      excluded: ["10.1.0.0/16", "fd00::/16"],
    },
    { kernel: inGateway, logger },
  );
  await gateway.init();
  await gateway.sync([{ id: "example", addresses: Object.values(pods.client) }]);

  const client = new Client({ kernel: kernelInNetns("/run/netns/client"), logger });
  await client.apply({
    uplink: "eth0",
    clusterRanges: ["10.1.0.0/16", "fd00::/16"],
    egresses: [
      {
        name: "example",
        destinations: ["0.0.0.0/0", "::/0"],
        excluded: [],
        gateways: [pods.gateway],
        peers: Object.values(pods.gateway),
        port: 5555,
        sourcePortAuto: false,
        originatingOnly: true,
      },
    ],
  });
  await show("with egress NAT the target sees");

  await gateway.update({ remove: ["example"] });
  await client.remove();
  await show("after its removal the target sees");
} finally {
  server.stop();
  for (const name of names) await run("ip", ["netns", "del", name]).catch(() => {});
}
