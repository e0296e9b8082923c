import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTopology, destroyTopology, flows, kernelOf } from "../testing/topology.ts";
import { endFlows, liveFlows, sourcesOfFlows } from "./flows.ts";

const kernel = kernelOf("gateway");
const MANY = 3_000;

/** Lines of conntrack(8), each for a flow that a client has begun, but for the last. */
const LINES = [
  "-I -p tcp -t 900 --state ESTABLISHED -u SEEN_REPLY -s 10.9.0.3 -d 192.0.2.9 --sport 40001 --dport 80 --src-nat 192.0.2.1",
  "-I -p udp -t 900 -s 10.9.0.4 -d 192.0.2.9 --sport 40002 --dport 53 --src-nat 192.0.2.1",
  "-I -p icmp -t 900 -s 10.9.0.4 -d 192.0.2.9 --icmp-type 8 --icmp-code 0 --icmp-id 7 --src-nat 192.0.2.1",
  "-I -p tcp -t 900 --state CLOSE_WAIT -u SEEN_REPLY -s 10.9.0.3 -d 192.0.2.9 --sport 40007 --dport 80 --src-nat 192.0.2.1",
  "-I -p tcp -t 900 --state TIME_WAIT -s 10.9.0.5 -d 192.0.2.9 --sport 40003 --dport 80 --src-nat 192.0.2.1",
  "-I -p tcp -t 900 --state CLOSE -s 10.9.0.6 -d 192.0.2.9 --sport 40004 --dport 80 --src-nat 192.0.2.1",
  "-I -p udp -t 900 -s fd00:9::2 -d 2001:db8::9 --sport 40005 --dport 53 --src-nat 2001:db8::1",
  "-I -p tcp -t 900 --state ESTABLISHED -s 192.0.2.1 -d 192.0.2.9 --sport 40006 --dport 443 -r 192.0.2.9 -q 192.0.2.1 --reply-port-src 443 --reply-port-dst 40006",
];
/** So many that the kernel tells of them in more than one message. */
const CROWD = Array.from(
  { length: MANY },
  (_, index) =>
    `-I -p udp -t 900 -s 10.9.1.1 -d 192.0.2.9 --sport ${index + 1} --dport 53 --src-nat 192.0.2.1`,
);

beforeAll(async () => {
  await buildTopology();
  // conntrack wants a file with a name.
  const load = ["-c", "cat >/tmp/flows && conntrack --load-file /tmp/flows && rm /tmp/flows"];
  await kernel.run([{ file: "sh", args: load, input: [...LINES, ...CROWD].join("\n") }]);
});
afterAll(destroyTopology);

test("those of clients are counted until they are over, and their sources known", async () => {
  expect(await liveFlows(kernel)).toBe(5 + MANY);
  expect((await sourcesOfFlows(kernel)).toSorted()).toEqual(
    ["10.9.0.3", "10.9.0.4", "10.9.0.5", "10.9.0.6", "10.9.1.1", "fd00:9::2"].toSorted(),
  );
});

test("those of some addresses are ended, all of them, and no others", async () => {
  await endFlows(kernel, ["10.9.0.4", "fd00:9::2", "10.9.0.99", "10.9.1.1"]);
  expect((await sourcesOfFlows(kernel)).toSorted()).toEqual(["10.9.0.3", "10.9.0.5", "10.9.0.6"]);
  expect(await flows("gateway", "src=192.0.2.1 ")).toHaveLength(1);
  await endFlows(kernel, ["10.9.0.4"]);
  expect(await liveFlows(kernel)).toBe(2);
});
