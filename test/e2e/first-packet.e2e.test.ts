import { expect, test } from "vitest";
import { scriptJob } from "../bed/workload/manifests.ts";
import { uniqueText } from "./kit/evidence.ts";
import { addressesOf } from "./kit/internet.ts";
import { INTERNET_EGRESS, NAMESPACE } from "./kit/names.ts";
import { client, describeOnline, gatewaysOf, kubectl, world } from "./kit/world.ts";

const PODS = world.long ? 50 : 10;
const AT_ONCE = 5;

describeOnline("a fresh client", (internet) => {
  test(`sends its first packet through a gateway, ${PODS} of ${PODS}`, { timeout: 1_200_000 }, async () => {
    const text = uniqueText("first");
    const { ipv4, ipv6 } = internet.wide;
    const job = scriptJob(
      client("first-packet", INTERNET_EGRESS),
      // The datagram is what the shell does first; pods with even numbers send it to v4, with odd numbers to v6.
      `a=(${ipv4} ${ipv6}); echo "${text}$JOB_COMPLETION_INDEX." > /dev/udp/\${a[JOB_COMPLETION_INDEX % 2]}/9000`,
      PODS,
      AT_ONCE,
    );
    await kubectl.apply(job);
    try {
      await kubectl.wait(["job", job.metadata.name, "-n", NAMESPACE], "condition=Complete", 1_100_000);
      const gateways = addressesOf(...(await gatewaysOf(INTERNET_EGRESS)));
      const numbers = Array.from({ length: PODS }, (_, number) => number);
      const senders = await Promise.all(numbers.map((number) => internet.sendersOf(`${text}${number}.`)));
      const unlucky = await withoutAllGateways();
      const seenRight = senders.filter(([sender, ...others], number) => {
        const family = number % 2 === 0 ? "." : ":";
        if (sender === undefined) return unlucky.has(number);
        return gateways.includes(sender) && sender.includes(family) && others.length === 0;
      });
      expect(seenRight, JSON.stringify(senders)).toHaveLength(PODS);
    } finally {
      await kubectl.delete([job], { wait: false });
    }
  });

  /** Numbers of the pods that started while a gateway did not answer, as their events say: kube-proxy may pick that one. */
  async function withoutAllGateways(): Promise<ReadonlySet<number>> {
    const options = [
      "--field-selector=reason=GatewayNotAnswering",
      "-o=jsonpath={.items[*].involvedObject.name}",
    ];
    const names = await kubectl.run(["get", "events", "-n", NAMESPACE, ...options]);
    return new Set(Array.from(names.matchAll(/first-packet-(\d+)-/g), ([, number]) => Number(number)));
  }
});
