import { join } from "node:path";
import { machine } from "@egress-nat/test/bed/datapath/machine";
import { build } from "esbuild";
import { expect, test } from "vitest";

test("the example runs as it is, and shows the gateway's address with egress NAT only", async () => {
  const outfile = join(machine.share, "namespaces.mjs");
  await build({
    entryPoints: [join(import.meta.dirname, "../examples/namespaces.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    conditions: ["source"],
  });
  expect(await machine.run(["node", outfile])).toBe(
    [
      "without egress NAT the target sees: 10.1.1.2 fd00:1::2",
      "with egress NAT the target sees: 10.1.2.2 fd00:2::2",
      "after its removal the target sees: 10.1.1.2 fd00:1::2",
      "",
    ].join("\n"),
  );
});
