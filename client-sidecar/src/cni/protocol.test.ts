import { expect, test } from "vitest";
import { AgentRequest } from "./protocol.ts";

const CHECK = { operation: "check", record: "c1.eth0", netns: "/run/netns/c1" };

// ip(8) and inet_ntop(3) write the last two with dots.
test.each(["10.1.2.3", "fd00:244::7", "::ffff:10.1.2.3", "::192.0.2.1"])(
  "the address %s is one for the agent, however the plugin spells it",
  (address) => {
    expect(AgentRequest.safeParse({ ...CHECK, addresses: [address] }).success).toBe(true);
  },
);

test.each(["10.1.2", "10.1.2.03", "fe80::1%eth0", "10.1.2.3/24", "web"])(
  "the address %s is none for the agent",
  (address) => {
    expect(AgentRequest.safeParse({ ...CHECK, addresses: [address] }).success).toBe(false);
  },
);
