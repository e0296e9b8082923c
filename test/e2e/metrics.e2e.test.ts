import { join } from "node:path";
import { EGRESS_LABEL, HEALTH_PORTS } from "@egress-nat/crds";
import { goProgram } from "@egress-nat/tools/system/go-program";
import { execa } from "execa";
import { beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { INTERNET_EGRESS } from "./kit/names.ts";
import { podsOf } from "./kit/product.ts";
import { kubectl, nodeOf } from "./kit/world.ts";

const Pods = z.object({
  items: z.tuple(
    [z.object({ spec: z.object({ nodeName: z.string() }), status: z.object({ podIP: z.string() }) })],
    z.unknown(),
  ),
});

let promlint: string;

beforeAll(async () => {
  promlint = await goProgram({ name: "promlint", folder: join(import.meta.dirname, "promlint") });
});

test.each([
  ["the operator", podsOf("operator"), HEALTH_PORTS.operator],
  ["a node agent", podsOf("node-agent"), HEALTH_PORTS.nodeAgent],
  ["a gateway", ["-n", INTERNET_EGRESS.namespace, "-l", EGRESS_LABEL], HEALTH_PORTS.egressPod],
])(
  "Prometheus's own linter has nothing to say of the metrics that %s has of its own",
  async (_, pods, port) => {
    const { items } = await kubectl.get(Pods, "pods", ...pods);
    const [{ spec, status }] = items;
    const url = `http://${status.podIP}:${port}/metrics`;
    const node = await nodeOf({ node: spec.nodeName });
    const metrics = await node.run(`python3 -c '
from urllib.request import urlopen
print(urlopen("${url}", timeout=30).read().decode())'`);
    expect(metrics).toContain("\negress_nat_");
    const { stdout } = await execa(promlint, { input: metrics });
    // Those of Node are prom-client's, which names gauges as counters.
    const objections = stdout.split("\n").filter((line) => !line.startsWith("nodejs_"));
    expect(objections.join("\n")).toBe("");
  },
);
