import { join } from "node:path";
import { helmTemplate } from "@egress-nat/tools/chart/helm-template";
import { goProgram } from "@egress-nat/tools/system/go-program";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startControllers } from "../bed/api/controllers.ts";
import { InstalledChart } from "./installed-chart.ts";
import { objectsIn, type Rendered } from "./render.ts";

/** With all that values can add. */
const VALUES = { nodeAgent: { startupTaint: "example.com/not-ready" }, invalidClients: "Deny" };

const POLICY = "ValidatingAdmissionPolicy";

let judged: readonly Rendered[];

beforeAll(async () => {
  const { stdout } = await helmTemplate({ values: VALUES, flags: ["--include-crds"] });
  judged = objectsIn(stdout).filter(({ kind }) => ["CustomResourceDefinition", POLICY].includes(kind));
});

describe("the oldest Kubernetes that is supported", () => {
  let program: string;

  // A minute and a half with empty Go caches.
  beforeAll(async () => {
    program = await goProgram({
      name: "oldest-apiserver",
      folder: join(import.meta.dirname, "oldest-apiserver"),
      versionOf: "k8s.io/apiserver",
    });
  });

  const objections = async (objects: readonly object[]) =>
    (await execa(program, { input: JSON.stringify(objects), reject: false, all: true })).all;

  test("accepts every CRD and policy", async () => {
    expect(judged.map(({ metadata }) => metadata.name)).toEqual(
      expect.arrayContaining(["egresses.coil.cybozu.com", "egress-nat-startup-taint"]),
    );
    expect(await objections(judged)).toBe("");
  });

  test("would not accept a CRD or a policy that uses what came later", async () => {
    const later = JSON.parse(
      JSON.stringify(judged)
        .replaceAll("isCIDR(self)", "isSemver(self)")
        .replaceAll("request.operation", "isSemver('1')"),
    );
    const text = await objections(later);
    expect(text).toContain(
      "CustomResourceDefinition egresses.coil.cybozu.com: spec.validation.openAPIV3Schema",
    );
    expect(text).toContain(`${POLICY} egress-nat-startup-taint: validations[0].expression`);
  });
});

describe("the newest Kubernetes that is supported", () => {
  let chart: InstalledChart;
  let controllers: AsyncDisposable;

  beforeAll(async () => {
    chart = await InstalledChart.in("kubernetes-versions-test");
    await chart.apply(VALUES);
    controllers = await startControllers(["validatingadmissionpolicy-status-controller"]);
  });

  afterAll(async () => {
    await controllers[Symbol.asyncDispose]();
    await chart.uninstall();
  });

  test("finds a type for every expression of the policies", async () => {
    const names = judged.filter(({ kind }) => kind === POLICY).map(({ metadata }) => metadata.name);
    const warnings = async () => {
      const { stdout } = await chart.run(["get", "validatingadmissionpolicies", "-o", "json"]);
      const { items } = JSON.parse(stdout) as { items: readonly Rendered[] };
      return Object.fromEntries(
        items.map(({ metadata, status }) => [
          metadata.name,
          status?.observedGeneration === undefined
            ? "not looked at"
            : (status.typeChecking?.expressionWarnings ?? []),
        ]),
      );
    };
    const none = Object.fromEntries(names.map((name) => [name, []]));
    await expect.poll(warnings, { timeout: 60_000, interval: 200 }).toEqual(none);
  });
});
