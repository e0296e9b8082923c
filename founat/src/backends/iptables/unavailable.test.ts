import { expect, test } from "vitest";
import { FounatError } from "../../error.ts";
import { unavailable } from "./unavailable.ts";

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
