import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { InstalledChart } from "./installed-chart.ts";

const ANNOTATION = "egress.coil.cybozu.com/internet";
const REMEDY = "write egress.coil.cybozu.com/<namespace of the Egress>: <name>[,<name>...]";
const ON_HOST = `the annotation ${ANNOTATION} has no effect: a pod on the host network cannot be a client; remove hostNetwork, or the annotation`;

let chart: InstalledChart;

beforeAll(async () => {
  chart = await InstalledChart.in("warnings-test");
  // The apiserver follows a new policy after a moment.
  const warned = async () => {
    const answers = await Promise.all(Object.values(WORKLOADS).map((wrap) => create(wrap(ON_HOST_NETWORK))));
    return answers.every(({ stderr }) => stderr.includes(ON_HOST));
  };
  await waitUntil(warned, { what: "the policies of warnings to hold", timeoutMs: 60_000 });
});

afterAll(() => chart.uninstall());

interface Template {
  readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
  readonly spec: object;
}

function template(annotations: Readonly<Record<string, string>>, spec: object = {}): Template {
  const containers = [{ name: "main", image: "debian" }];
  return { metadata: { annotations }, spec: { containers, restartPolicy: "Always", ...spec } };
}

const ON_HOST_NETWORK = template({ [ANNOTATION]: "nat" }, { hostNetwork: true });

const pod = ({ metadata, spec }: Template) => ({
  ...{ apiVersion: "v1", kind: "Pod" },
  ...{ metadata: { name: "warned", ...metadata }, spec },
});

function inApps(kind: string) {
  return ({ metadata, spec }: Template) => ({
    ...{ apiVersion: "apps/v1", kind, metadata: { name: "warned" } },
    spec: {
      selector: { matchLabels: { app: "warned" } },
      template: { metadata: { labels: { app: "warned" }, ...metadata }, spec },
    },
  });
}

const job = ({ metadata, spec }: Template) => ({
  template: { metadata, spec: { ...spec, restartPolicy: "Never" } },
});

const WORKLOADS: Readonly<Record<string, (template: Template) => object>> = {
  Pod: pod,
  Deployment: inApps("Deployment"),
  StatefulSet: inApps("StatefulSet"),
  DaemonSet: inApps("DaemonSet"),
  Job: (wanted) => ({
    ...{ apiVersion: "batch/v1", kind: "Job", metadata: { name: "warned" } },
    spec: job(wanted),
  }),
  CronJob: (wanted) => ({
    ...{ apiVersion: "batch/v1", kind: "CronJob", metadata: { name: "warned" } },
    spec: { schedule: "0 0 * * *", jobTemplate: { spec: job(wanted) } },
  }),
};

function create(object: object) {
  return chart.run(["create", "--dry-run=server", "-f", "-"], { input: JSON.stringify(object) });
}

/** Keys that were meant for egress-nat, by the look of them. */
const LOOKALIKES = [
  "egres.coil.cybozu.com/internet",
  "egresscoil.cybozu.com/internet",
  "egress.coil.cybosu.com/internet",
  "egress.coli.cybozu.com/internet",
  "egress.coil.cybozu.io/internet",
  "egress.cybozu.com/internet",
  "coil.cybozu.com/internet",
  "Egress.coil.cybozu.com/internet",
  "egress.coil.cybozu.com",
];

describe("kubectl", () => {
  test.each(Object.keys(WORKLOADS))(
    "warns of clients on the host's network in a %s, and makes it",
    async (kind) => {
      const { exitCode, stderr, stdout } = await create((WORKLOADS[kind] ?? pod)(ON_HOST_NETWORK));
      expect(stderr).toContain(ON_HOST);
      expect(stdout).toContain("warned created");
      expect(exitCode).toBe(0);
    },
  );

  test.each([
    ["no name", ANNOTATION, ""],
    ["a name too few", ANNOTATION, "nat,"],
    ["a name in capitals", ANNOTATION, "Nat"],
    ["a namespace beside the name", ANNOTATION, "internet/nat"],
    ["a namespace that cannot be", "egress.coil.cybozu.com/Internet", "nat"],
    ["a namespace with a dot", "egress.coil.cybozu.com/internet.nat", "nat"],
  ])("warns of an annotation with %s", async (_, key, value) => {
    const { exitCode, stderr } = await create(pod(template({ [key]: value })));
    expect(stderr).toContain(
      `the annotation ${key}: "${value}" does not name an Egress: the pod will not start; ${REMEDY}`,
    );
    expect(exitCode).toBe(0);
  });

  test("warns of an annotation of two lines, in one", async () => {
    const { stderr } = await create(pod(template({ [ANNOTATION]: "nat\nvpn" })));
    expect(stderr).toContain(`the annotation ${ANNOTATION}: "nat vpn" does not name an Egress`);
  });

  test("names every annotation that is wrong, and no other", async () => {
    const wrong = { "egress.coil.cybozu.com/a": "A", "egress.coil.cybozu.com/b": "-" };
    const { stderr } = await create(pod(template({ ...wrong, [ANNOTATION]: "nat" }, { hostNetwork: true })));
    expect(stderr).toMatch(/^Warning: .*host network cannot be a client/m);
    // In whatever order: CEL goes through a map as it likes.
    const [warning] = stderr.match(/^Warning: .*does not name an Egress.*$/m) ?? [];
    expect(warning).toContain('egress.coil.cybozu.com/a: "A" does not name');
    expect(warning).toContain('egress.coil.cybozu.com/b: "-" does not name');
    expect(stderr).not.toContain(`${ANNOTATION}: "nat"`);
  });

  test.each(LOOKALIKES)("warns of %s, which is none of ours, though it looks like one", async (key) => {
    const annotations = { [key]: "nat", "example.com/team": "a" };
    for (const wrap of Object.values(WORKLOADS)) {
      const { exitCode, stderr } = await create(wrap(template(annotations)));
      expect(stderr).toContain(
        `an annotation that looks like one of egress-nat, and has no effect: ${key}; ${REMEDY}`,
      );
      expect(exitCode).toBe(0);
    }
  });

  test.each<[string, Template]>([
    ["a client", template({ [ANNOTATION]: "nat, vpn\n" })],
    ["no client on the host's network", template({ "example.com/egress": "nat" }, { hostNetwork: true })],
    ["a gateway", template({ "coil.cybozu.com/egress-gateway": "true" })],
    [
      "somebody else's",
      template({
        "egress.example.com/internet": "nat",
        "coil.cybozu.com/pool": "default",
        "cybozu.com/team": "a",
      }),
    ],
  ])("says nothing of %s", async (_, wanted) => {
    for (const wrap of Object.values(WORKLOADS)) {
      const { exitCode, stderr } = await create(wrap(wanted));
      expect(stderr).toBe("");
      expect(exitCode).toBe(0);
    }
  });
});

describe("with invalidClients: Deny", () => {
  const deployment = (wanted: Template, replicas: number) => {
    const { spec, ...rest } = inApps("Deployment")(wanted);
    return { ...rest, spec: { ...spec, replicas } };
  };
  const inNamespace = (verb: string, object: object) =>
    chart.run([verb, "-n", chart.namespace, "-f", "-"], { input: JSON.stringify(object) });
  const isRefused = async () => {
    const answers = await Promise.all(Object.values(WORKLOADS).map((wrap) => create(wrap(ON_HOST_NETWORK))));
    return answers.every(({ exitCode }) => exitCode !== 0);
  };

  beforeAll(async () => {
    await inNamespace("create", deployment(ON_HOST_NETWORK, 1));
    await chart.apply({ invalidClients: "Deny" });
    await waitUntil(isRefused, { what: "the policies to refuse", timeoutMs: 60_000 });
  });

  test.each(Object.keys(WORKLOADS))(
    "the apiserver refuses clients on the host's network in a %s",
    async (kind) => {
      const { exitCode, stderr } = await create((WORKLOADS[kind] ?? pod)(ON_HOST_NETWORK));
      expect(stderr).toContain(ON_HOST);
      expect(exitCode).toBe(1);
    },
  );

  test("it refuses an annotation that names no Egress, and admits clients and whom it only wonders about", async () => {
    expect((await create(pod(template({ [ANNOTATION]: "Nat" })))).exitCode).toBe(1);
    expect((await create(pod(template({ [ANNOTATION]: "nat" })))).exitCode).toBe(0);
    expect((await create(pod(template({ "coil.cybozu.com/internet": "nat" })))).exitCode).toBe(0);
  });

  test("what was there before can be scaled, and not made worse", async () => {
    expect((await inNamespace("replace", deployment(ON_HOST_NETWORK, 2))).all).toContain("replaced");
    const worse = template({ [ANNOTATION]: "Nat" }, { hostNetwork: true });
    expect((await inNamespace("replace", deployment(worse, 2))).all).toContain("denied");
  });
});
