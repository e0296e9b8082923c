import { expect, test } from "vitest";
import { FounatError } from "../../error.ts";
import { failure } from "../../kernel/script.ts";
import type { Command } from "../../kernel/step.ts";
import { unavailable } from "./unavailable.ts";

/** What a reader of a condition sees: the operator cuts it off there. */
const SHOWN = 512;

const LISTING: Command = {
  file: "sh",
  args: ["-c", "ipset restore && iptables-nft-restore", "sh", "iptables-nft", "-X EQ-FORWARD\n".repeat(40)],
};
const TRIAL: Command = { file: "sh", args: ["-c", "tc qdisc add dev lo clsact && tc -batch -\n".repeat(20)] };
const SAVE: Command = { file: "ipset", args: ["save"] };

function refusal(command: Command, stderr: string): unknown {
  try {
    return unavailable(failure(command, stderr, 1));
  } catch (error) {
    return error;
  }
}

test.each([
  [
    "rules are listed",
    LISTING,
    "iptables-nft-restore v1.8.9 (nf_tables): Couldn't load match `set':No such file or directory\n\nError occurred at line: 14\nTry `iptables-nft-restore -h' or 'iptables-nft-restore --help' for more information.",
    "install Debian's packages iptables, ipset and iproute2, and load the kernel modules on the node, or use the nftables backend",
  ],
  [
    "filters are tried",
    TRIAL,
    "Error: TC classifier not found.\nWe have an error talking to the kernel\nCommand failed -:1",
    "install Debian's packages iptables, ipset and iproute2, and load the kernel modules on the node, or use the nftables backend",
  ],
  [
    "sets are saved",
    SAVE,
    "sh: 37: ipset: not found",
    "install Debian's packages iptables, ipset and iproute2, and load the kernel modules on the node, or use the nftables backend",
  ],
  ["rules are listed, without the capability", LISTING, "Can't open socket to ipset.", "CAP_NET_RAW"],
  [
    "filters are tried, without the capability",
    TRIAL,
    "Can't open socket to ipset.\nipset: unknown set name 'en-inner4'\n... ipset(en-inner4 src,src)<<\nIllegal \"ematch\"\nCommand failed -:1",
    "CAP_NET_RAW",
  ],
  [
    "old iptables is asked",
    LISTING,
    "iptables-legacy-restore: unable to initialize table 'filter'",
    "load the kernel modules on the node",
  ],
  [
    "what is said has failed twice",
    SAVE,
    "a failed: b: ipset: not found",
    "load the kernel modules on the node",
  ],
])("what is missing, and what to do, comes first: %s", (_, command, stderr, remedy) => {
  const error = refusal(command, stderr);
  expect(error).toMatchObject({ code: "backend-unavailable", retryable: false });
  const { message } = error as FounatError;
  expect(message.slice(0, SHOWN)).toContain(stderr);
  expect(message.slice(0, SHOWN)).toContain(remedy);
  expect(message).toMatch(/act_gact and act_skbedit, and of iptables-legacy .*$/);
  expect(message).not.toContain(command.args.join(" "));
});

test("the capability is named only where it is missing", () => {
  expect(String(refusal(SAVE, "sh: 37: ipset: not found"))).not.toContain("CAP_NET_RAW");
});

const failed = (message: string) => new FounatError("kernel-command-failed", message, { retryable: true });

// As Debian 12 says it where a program or a module is not there.
test.each([
  "sh: 1: ipset: not found",
  "ipset v7.17: Error in line 1: Kernel error received: set type not supported",
  "Warning: Extension devgroup revision 0 not supported, missing kernel module?\niptables-restore: line 5 failed",
  "line 4: RULE_APPEND failed (No such file or directory): rule in chain Q",
  "RTNETLINK answers: No such file or directory\nWe have an error talking to the kernel",
  "Error: Failed to load TC action module.",
  "Error: TC classifier not found.",
  "Error: Specified qdisc kind is unknown.",
])("what is missing is named, and no retry helps: %s", (message) => {
  expect(() => unavailable(failed(message))).toThrow(
    expect.objectContaining({
      code: "backend-unavailable",
      retryable: false,
      message: expect.stringContaining(message),
    }),
  );
});

test("what has failed for another reason is told as it is", () => {
  const busy = failed("Another app is currently holding the xtables lock; still 4s 0us time ahead");
  const other = new Error("No such file or directory");
  for (const error of [busy, other]) expect(() => unavailable(error)).toThrow(error);
});
