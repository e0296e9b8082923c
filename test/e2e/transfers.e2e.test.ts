import { expect, test } from "vitest";
import { z } from "zod";
import type { Probe } from "../bed/workload/probe-pod.ts";
import { ECHO_PORT } from "./kit/internet.ts";
import { describeOnline, player, world } from "./kit/world.ts";

const MEBIBYTE = 1024 * 1024;
const EXCHANGES = world.long ? 101 : 5;
/** In bytes: below, at and above the MTU of the tunnel and of the uplink, up to many fragments. */
const DATAGRAM_SIZES = [1, 1372, 1444, 1445, 1472, 1473, 4000, 20_000];

const Exchanges = z.object({ errors: z.array(z.string()), seconds: z.number() });

describeOnline("through a gateway", (internet) => {
  test.each(["ipv4", "ipv6"] as const)(
    `${EXCHANGES} exchanges of 1 MiB over %s bring back what was sent`,
    { timeout: 900_000 },
    async (family) => {
      const bob = await player("bob");
      // Several requests: each ends within the time that one `kubectl exec` is given.
      for (let left = EXCHANGES; left > 0; left -= 20) {
        const { errors } = await bob.askOne(
          {
            do: "exchange",
            address: internet.wide[family],
            port: ECHO_PORT,
            size: MEBIBYTE,
            count: Math.min(left, 20),
          },
          Exchanges,
        );
        expect(errors).toEqual([]);
      }
    },
  );

  test.each(["ipv4", "ipv6"] as const)("datagrams above the MTU come back whole over %s", async (family) => {
    const bob = await player("bob");
    const answers = await bob.ask(
      DATAGRAM_SIZES.map((size): Probe => {
        return { do: "datagram", address: internet.wide[family], port: ECHO_PORT, size };
      }),
    );
    expect(DATAGRAM_SIZES.map((size, index) => [size, answers[index]])).toEqual(
      DATAGRAM_SIZES.map((size) => [size, { intact: true }]),
    );
  });

  test.each(["ipv4", "ipv6"] as const)(
    "a path of 1400 bytes behind the gateway does not stall TCP over %s",
    async (family) => {
      const bob = await player("bob");
      const { errors, seconds } = await bob.askOne(
        { do: "exchange", address: internet.lowMtu[family], port: ECHO_PORT, size: MEBIBYTE },
        Exchanges,
      );
      expect(errors).toEqual([]);
      // A stall lasts for retransmission timeouts that double from one second.
      expect(seconds).toBeLessThan(10);
    },
  );
});
