import { expect, test } from "vitest";
import type { Kernel } from "../kernel/kernel.ts";
import type { Step } from "../kernel/step.ts";
import type { ClientConfig, ClientEgress } from "./config.ts";
import { probeTunnels } from "./probe.ts";

const ADDRESSES = { ipv4: "10.244.1.7", ipv6: "fd00:244:1::7" };
const GATEWAY = { ipv4: "10.96.0.10", ipv6: "fd00:96::10" };

function egress(name: string, changes: Partial<ClientEgress> = {}): ClientEgress {
  return {
    ...{ name, destinations: ["0.0.0.0/0", "::/0"], excluded: [], gateways: [GATEWAY], peers: [] },
    ...{ port: 5555, sourcePortAuto: false, originatingOnly: true },
    ...changes,
  };
}

const config = (...egresses: readonly ClientEgress[]): ClientConfig => ({
  uplink: "eth0",
  egresses,
  clusterRanges: [],
});

/** Answers pings with what ping would say. */
function pinger(say: (address: string) => string): Pick<Kernel, "run"> & { readonly asked: string[] } {
  const asked: string[] = [];
  const run = async (steps: readonly Step[]) =>
    steps.map((step) => {
      const address = "args" in step ? (step.args.at(-1) ?? "") : "";
      asked.push(address);
      return say(address);
    });
  return { run, asked };
}

const ANSWERED = "1 packets transmitted, 1 received, 0% packet loss, time 0ms";
const LOST = "5 packets transmitted, 0 received, 100% packet loss, time 800ms";

test("each Egress is asked in each family that it and the client have", async () => {
  const narrow = egress("narrow", { destinations: ["192.168.0.0/16"], gateways: [{ ipv4: "10.96.0.11" }] });
  const kernel = pinger(() => ANSWERED);
  expect(
    await probeTunnels(kernel, config(egress("wide"), narrow), { addresses: ADDRESSES, timeoutMs: 1 }),
  ).toEqual([]);
  expect(kernel.asked).toEqual(["192.0.0.129", "100:0:0:1::1", "192.0.0.130"]);
});

test("nobody is asked in a family that the client lacks, for an Egress that carries nothing, or is not named", async () => {
  const kernel = pinger(() => ANSWERED);
  const egresses = [
    egress("first"),
    egress("same again"),
    egress("third", { destinations: ["192.0.2.0/24"] }),
  ];
  await probeTunnels(kernel, config(...egresses), { addresses: { ipv4: ADDRESSES.ipv4 }, timeoutMs: 1 });
  expect(kernel.asked).toEqual(["192.0.0.129", "192.0.0.131"]);
  const options = { addresses: { ipv4: ADDRESSES.ipv4 }, egresses: ["third"], timeoutMs: 1 };
  await probeTunnels(kernel, config(...egresses), options);
  expect(kernel.asked.slice(2)).toEqual(["192.0.0.131"]);
});

test("who does not answer is named, and so is a ping that is not there", async () => {
  const kernel = pinger((address) => (address.includes(":") ? "" : LOST));
  expect(
    await probeTunnels(kernel, config(egress("wide")), { addresses: ADDRESSES, timeoutMs: 1500 }),
  ).toEqual([
    { egress: "wide", family: "ipv4", reason: "no answer within 2 s" },
    { egress: "wide", family: "ipv6", reason: "ping could not be run" },
  ]);
});
