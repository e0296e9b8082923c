import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiVersion, InstalledChart } from "./installed-chart.ts";

const NAMESPACE = "deletion-warning-test";
const WARNING = `Warning: Validation failed for ValidatingAdmissionPolicy 'egress-nat-deletion-of-egresses'`;

let chart: InstalledChart;

const egress = (name: string) => ({
  ...{ apiVersion, kind: "Egress", metadata: { name, namespace: NAMESPACE } },
  spec: { destinations: ["192.0.2.0/24"] },
});

/** As the operator counts them. */
async function withClients(name: string, clients: number): Promise<void> {
  await chart.create(egress(name));
  const status = JSON.stringify({ status: { clients } });
  const patch = [
    "patch",
    "egress",
    name,
    "-n",
    NAMESPACE,
    "--subresource=status",
    "--type=merge",
    "-p",
    status,
  ];
  const { exitCode, all } = await chart.run(patch);
  expect(exitCode, all).toBe(0);
}

const remove = (name: string, ...options: readonly string[]) =>
  chart.run(["delete", "egress", name, "-n", NAMESPACE, ...options]);

beforeAll(async () => {
  chart = await InstalledChart.in(NAMESPACE);
  await withClients("used", 3);
  await withClients("unused", 0);
  await chart.create(egress("new"));
  // The apiserver follows a new policy after a moment.
  await waitUntil(async () => (await remove("used", "--dry-run=server")).stderr.includes(WARNING), {
    what: "the policy that warns of deletions to hold",
    timeoutMs: 60_000,
  });
});

afterAll(() => chart.uninstall());

test("who deletes an Egress that has clients is told, and it is deleted", async () => {
  const { stderr, stdout, exitCode } = await remove("used");
  expect(stderr).toContain(
    `the Egress ${NAMESPACE}/used has 3 clients: what they send to its destinations is rejected once it is gone`,
  );
  expect(stdout).toContain("deleted");
  expect(exitCode).toBe(0);
});

test.each(["unused", "new"])("an Egress without clients is deleted without a word (%s)", async (name) => {
  const { stderr, exitCode } = await remove(name);
  expect(stderr).toBe("");
  expect(exitCode).toBe(0);
});
