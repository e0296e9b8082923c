import { describe, expect, it } from "vitest";
import { FounatError } from "../error.ts";
import type { Step } from "../kernel/step.ts";
import { countLive, endFlows, masqueradedSources } from "./flows.ts";
import { Gateway } from "./gateway.ts";

const IPV4 = `\
icmp     1 29 src=10.0.0.2 dst=192.0.2.9 type=8 code=0 id=1628 src=192.0.2.9 dst=192.0.2.1 type=0 code=0 id=58308 mark=0 use=1
tcp      6 431999 ESTABLISHED src=10.0.0.3 dst=192.0.2.9 sport=40000 dport=80 src=192.0.2.9 dst=192.0.2.1 sport=80 dport=52001 [ASSURED] mark=0 use=1
udp      17 29 src=10.0.0.4 dst=192.0.2.9 sport=40000 dport=53 [UNREPLIED] src=192.0.2.9 dst=192.0.2.1 sport=53 dport=52002 mark=0 use=1
tcp      6 src=10.0.0.3 dst=192.0.2.9 sport=40001 dport=80 src=192.0.2.9 dst=192.0.2.1 sport=80 dport=52003 [OFFLOAD] mark=0 use=2
udp      17 src=10.0.0.5 dst=192.0.2.9 sport=40000 dport=53 src=192.0.2.9 dst=192.0.2.1 sport=53 dport=52004 [OFFLOAD] mark=0 use=2
udp      17 29 src=10.0.0.2 dst=192.0.2.1 sport=5555 dport=5555 src=192.0.2.1 dst=10.0.0.2 sport=5555 dport=5555 mark=1 use=1
tcp      6 9 TIME_WAIT src=192.0.2.1 dst=10.96.0.1 sport=50000 dport=443 src=10.96.0.1 dst=192.0.2.1 sport=443 dport=50000 mark=0 use=1
`;
const IPV6 = `\
icmpv6   58 29 src=fd00:a::2 dst=2001:db8::9 type=128 code=0 id=1629 src=2001:db8::9 dst=2001:db8::1 type=129 code=0 id=1515 mark=0 use=1
`;

describe("the flows of clients", () => {
  it("are told from tunnels and from the gateway's own", () => {
    expect([...masqueradedSources([IPV4, IPV6])]).toEqual([
      "10.0.0.2",
      "10.0.0.3",
      "10.0.0.4",
      "10.0.0.5",
      "fd00:a::2",
    ]);
    expect(masqueradedSources(["", ""]).size).toBe(0);
  });

  it("are counted until they are over", () => {
    expect(countLive([IPV4, IPV6])).toBe(6);
    const closing = IPV4.replace("ESTABLISHED", "CLOSE_WAIT");
    expect(countLive([closing])).toBe(5);
    expect(countLive([closing.replace("CLOSE_WAIT", "TIME_WAIT")])).toBe(4);
    expect(countLive([closing.replace("CLOSE_WAIT", "CLOSE")])).toBe(4);
    expect(countLive(["", ""])).toBe(0);
  });

  it("that a process left behind are ended by the next one, once, and those of clients are not", async () => {
    const ended: string[] = [];
    const answer = (step: Step): string => {
      if (!("file" in step)) return "";
      if (step.args.includes("-L")) return step.args.includes("ipv4") ? IPV4 : IPV6;
      if (step.args.join().includes("conntrack")) ended.push(step.input ?? "");
      return "";
    };
    const run = async (steps: readonly Step[]) => steps.map(answer);
    const kernel = { run, read: run };
    const config = { port: 5555, sourcePortAuto: false, destinations: ["0.0.0.0/0"], excluded: [] };
    const logger = { info: () => undefined, debug: () => undefined } as never;
    const gateway = new Gateway(config, { kernel, logger });
    const clients = [{ id: "a", addresses: ["10.0.0.2", "fd00:a::2"] }];
    await gateway.sync(clients);
    await gateway.sync(clients);
    const strangers = ["10.0.0.3", "10.0.0.4", "10.0.0.5"];
    expect(ended).toEqual([strangers.map((a) => `-D -f ipv4 -s ${a}\n`).join("")]);
  });

  it("are ended in one process, of both families", async () => {
    const inputs: unknown[] = [];
    const run = async ([step]: readonly Step[]) => [
      String(inputs.push(step && "input" in step && step.input)),
    ];
    await endFlows({ run, read: run }, ["10.1.0.2", "fd00:1::2"]);
    expect(inputs).toEqual(["-D -f ipv4 -s 10.1.0.2\n-D -f ipv6 -s fd00:1::2\n"]);
  });

  it("that end by themselves meanwhile are no failure, however many they are", async () => {
    const expiring = Array.from({ length: 1000 }, (_, i) => IPV4.replaceAll("sport=40000", `sport=${i}`));
    let kernel = expiringFlows([expiring.join(""), IPV6], 1000);
    await endFlows(kernel, ["10.0.0.4"]);
    expect(kernel.left()).toBe(0);
    // More than there were is no coincidence.
    kernel = expiringFlows([IPV4, IPV6], 1000);
    await expect(endFlows(kernel, ["10.0.0.4", "fd00:a::2"])).rejects.toThrow(GONE);
    expect(kernel.left()).toBe(1000 - 4);
  });

  it("that conntrack cannot end for another reason are a failure at once", async () => {
    const run = () => Promise.reject(new FounatError("kernel-command-failed", "invalid parameters"));
    await expect(endFlows({ run, read: run }, ["10.1.0.2"])).rejects.toThrow("invalid parameters");
  });
});

const GONE = "conntrack v1.4.7 (conntrack-tools): Operation failed: such conntrack doesn't exist";

/** A kernel whose flows end by themselves, one while each of so many deletions runs. */
function expiringFlows(listings: readonly string[], times: number) {
  let left = times;
  return {
    left: () => left,
    read: async () => [...listings],
    run: async () => {
      if (left === 0) return [];
      left -= 1;
      throw new FounatError("kernel-command-failed", GONE, { retryable: true });
    },
  };
}
