import { helmBinary } from "@egress-nat/tools/system/client-tools";
import { removeCluster } from "../bed/cluster/cluster.ts";
import { PAIR } from "../bed/cluster/pair.ts";
import { COIL } from "../coil/names.ts";
import { OLDEST } from "../demo/names.ts";
import { CLUSTER } from "../e2e/kit/names.ts";
import { settingsFrom } from "../e2e/kit/settings.ts";
import { UPGRADED } from "../upgrade/names.ts";
import { runChecks } from "./checks.ts";
import type { Plan, Stage, StageContext } from "./stage.ts";
import { sum, type Tally } from "./tally.ts";
import { runVitest } from "./vitest.ts";

const NODE = ["node", "--conditions=source", "--disable-warning=ExperimentalWarning"] as const;

/** End-to-end cases that would not fit into the time that `npm test` has. */
const AT_NIGHT = filesOf(
  ...["affinity", "agent-outage", "bounds", "deletion", "drain", "families", "faults"],
  ...["hostport", "inbound-deny", "install-uninstall", "waiting"],
);

/** End-to-end cases that are the same whoever picks gateways: two choose the agent themselves, one is about the release. */
const WHOEVER_PICKS = filesOf("chaos", "surviving-flows", "install-uninstall");

/** What `npm test` runs. */
export const STAGES: Plan = [
  // While one of them waits for a clock or an answer, another one has the processor.
  [
    vitestStage("unit", "each workspace by itself, no kernel and no cluster"),
    { name: "chart", summary: "helm lint", run: lintChart },
    vitestStage("api", "against a real apiserver", { shards: 2 }),
    vitestStage("datapath", "against a real kernel, in virtual machines", { shards: 2 }),
  ],
  [
    { name: "lint", summary: "types, format, lint rules, what nobody uses, generated files", run: lint },
    e2eStage("the installed product on a real cluster", { exclude: AT_NIGHT }),
  ],
];

const AT_LENGTH = { E2E_LENGTH: "long" };

/** What `npm run test:nightly` adds: systems of another make, and at length what chance has a part in. */
export const NIGHTLY_STAGES: Plan = [
  [
    endingClusters(
      () => [...PAIR, UPGRADED, OLDEST, COIL],
      vitestStage(
        "systems",
        "two test clusters side by side; a kernel without IPv6; an upgrade; the oldest Kubernetes; coil's own suite",
      ),
    ),
  ],
  [
    vitestStage(
      "unit",
      "decoders of what comes from outside, 100,000 cases each (10,000 of the CNI plugin, a process each)",
      {
        name: "fuzz",
        environment: AT_LENGTH,
        only: [".fuzz.test.ts"],
      },
    ),
    ...(["arm64", "old-amd64"] as const).map((name) =>
      vitestStage("unit", "the CNI plugin on another processor, emulated", {
        name,
        environment: { PLUGIN_PROCESSOR: name },
        only: ["/plugin.test.ts"],
      }),
    ),
    vitestStage("datapath", "gateways with each backend, iptables-legacy too, at length", {
      name: "backends",
      environment: AT_LENGTH,
      only: ["/gateway/"],
    }),
    vitestStage("datapath", "programs whose ports are held, at length", {
      name: "hostile",
      environment: AT_LENGTH,
      only: ["/hostile/"],
    }),
  ],
  [
    vitestStage(
      "datapath",
      "chains of upstream's CNI plugins with egress-nat, all versions, runtimes and places",
      {
        name: "cni-chains",
        environment: AT_LENGTH,
        only: ["/cni/"],
      },
    ),
  ],
  [
    vitestStage("api", "against a real apiserver, at length", {
      name: "api-long",
      environment: AT_LENGTH,
    }),
  ],
  [e2eStage("all cases, at length", { name: "e2e-long", environment: AT_LENGTH })],
  [
    e2eStage("kube-proxy in iptables mode, a cluster outside RFC 1918", {
      name: "e2e-iptables",
      environment: { E2E_KUBE_PROXY: "iptables", E2E_RANGES: "mixed" },
    }),
  ],
  [
    e2eStage("gateways picked by the node agent, in all cases that leave it open who picks", {
      name: "e2e-agent",
      environment: { E2E_SELECTION: "Agent" },
      exclude: WHOEVER_PICKS,
    }),
  ],
];

async function lint(context: StageContext): Promise<Tally> {
  const { fix } = context;
  // Types come first: they write the declarations that the promise rules read.
  const types = await runChecks([{ title: "types", command: ["tsc", "-b"] }], context);
  const others = await runChecks(
    [
      { title: "format and lint rules", command: ["biome", "check", ...(fix ? ["--write"] : []), "."] },
      { title: "promises", command: ["oxlint", "--type-aware", ...(fix ? ["--fix"] : [])] },
      { title: "what nobody uses", command: ["knip", "--no-progress", "--treat-config-hints-as-errors"] },
      {
        title: "generated files",
        command: [...NODE, "test/generate/main.ts", ...(fix ? [] : ["--check"])],
      },
    ],
    context,
  );
  return sum([types, others]);
}

async function lintChart(context: StageContext): Promise<Tally> {
  const command = [await helmBinary(), "lint", "--strict", "config/helm/egress-nat"] as const;
  return runChecks([{ title: "helm lint --strict", command }], context);
}

interface VitestOptions {
  readonly name?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Files that do not run unless the user asks for them by name: glob patterns. */
  readonly exclude?: readonly string[];
  /** Parts of names: the files that run unless the user asks for others. */
  readonly only?: readonly string[];
  /** How many runs share the files, each with a setup of its own, unless the user asks for some of them. */
  readonly shards?: number;
}

function vitestStage(project: string, summary: string, options: VitestOptions = {}): Stage {
  const { name = project, environment = {}, exclude = [], only = [], shards = 1 } = options;
  return {
    name,
    summary,
    run: async ({ root, signal, filters, amongOthers }) => {
      const named = filters.length > 0;
      const count = named ? 1 : shards;
      const common = {
        ...{ project, environment, filters: named ? filters : only, exclude: named ? [] : exclude },
        ...((amongOthers || count > 1) && { label: name }),
      };
      const runs = Array.from({ length: count }, (_, index) =>
        runVitest({ ...common, shard: { index: index + 1, count } }, root, signal),
      );
      return sum(await Promise.all(runs));
    },
  };
}

/** Glob patterns of end-to-end files. */
function filesOf(...names: readonly string[]): string[] {
  return names.map((name) => `**/${name}.e2e.test.ts`);
}

function e2eStage(summary: string, options: VitestOptions = {}): Stage {
  return endingClusters(
    () => {
      const { kubeconfig, keptCluster } = settingsFrom(process.env);
      return kubeconfig === undefined && keptCluster === undefined ? [CLUSTER] : [];
    },
    vitestStage("e2e", summary, options),
  );
}

/** Vitest does not take away what it has set up when it is interrupted, or when setting it up fails halfway. */
function endingClusters(names: () => readonly string[], stage: Stage): Stage {
  return {
    ...stage,
    run: async (context) => {
      const clusters = names();
      try {
        return await stage.run(context);
      } finally {
        for (const name of clusters) await removeCluster(name);
      }
    },
  };
}
