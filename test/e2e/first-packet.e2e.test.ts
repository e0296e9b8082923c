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
      const seenRight = senders.filter(([sender = ""], number) => {
        const family = number % 2 === 0 ? "." : ":";
        return gateways.includes(sender) && sender.includes(family) && senders[number]?.length === 1;
      });
      expect(seenRight, JSON.stringify(senders)).toHaveLength(PODS);
    } finally {
      await kubectl.delete([job], { wait: false });
    }
  });
});
