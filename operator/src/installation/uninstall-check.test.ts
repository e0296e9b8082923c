import { expect, test } from "vitest";
import { EgressesLeft } from "./uninstall-check.ts";

test("a refusal to uninstall names the Egresses and the command that lists them", () => {
  expect(new EgressesLeft(["internet/nat"]).message).toBe(
    [
      "egress-nat is not uninstalled: there is 1 Egress (internet/nat), and its clients would be cut off.",
      "List it:",
      "",
      "    kubectl get egresses -A",
      "",
      "Delete it, move its clients elsewhere, and run `helm uninstall` again. To keep egress-nat instead, tell Helm,",
      "which upgrades no release that it has begun to uninstall, with the last revision that `helm history` shows:",
      "",
      "    helm rollback RELEASE REVISION",
    ].join("\n"),
  );
});

test("a refusal to uninstall stays readable with many Egresses", () => {
  const names = Array.from({ length: 500 }, (_, index) => `internet/nat-${index}`);
  expect(new EgressesLeft(names).message).toContain("there are 500 Egresses (internet/nat-0,");
  expect(new EgressesLeft(names).message.length).toBeLessThan(800);
});
