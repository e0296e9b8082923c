import { expect, test } from "vitest";
import { tunnelPackets } from "./metrics.ts";

const DEV = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     120       2    0    0    0     0          0         0      120       2    0    0    0     0       0          0
  eth0: 9000000    9000    0    0    0     0          0         0  8000000    8000    0    0    0     0       0          0
  fou4:123456789     700    0    0    0     0          0         0    65000     650    0    0    0     0       0          0
`;

test("the packets of the tunnel are told by family and direction", () => {
  expect(tunnelPackets(DEV)).toEqual([
    { labels: { family: "ipv4", direction: "from_clients" }, packets: 700 },
    { labels: { family: "ipv4", direction: "to_clients" }, packets: 650 },
  ]);
});
