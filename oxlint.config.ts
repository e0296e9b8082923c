/**
 * What oxlint looks for: promises that nobody waits for (docs/adr/0015-oxlint-for-promises.md), imports that the house has
 * no way for (docs/architecture.md has a picture of it), and functions of the product that are too long for a screen.
 */

import { defineConfig, type OxlintOverride } from "oxlint";

/** What each workspace imports of the others. Its tests may import more. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  addresses: [],
  program: [],
  crds: ["addresses"],
  founat: ["addresses"],
  kube: ["addresses"],
  operator: ["addresses", "crds", "kube", "program"],
  "egress-pod": ["addresses", "crds", "founat", "kube", "program"],
  "client-sidecar": ["addresses", "crds", "founat", "kube", "program"],
  tools: ["crds"],
};

const PROGRAMS = ["operator", "egress-pod", "client-sidecar"];

/** What the folders beside each other import of one another: whole folders, or single files. */
const LAYERS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  "founat/src": {
    kernel: [],
    routing: [],
    heartbeat: [],
    iproute: ["kernel", "routing"],
    // They spell what is decided above them: that is plain data.
    backends: [
      ...["kernel", "routing", "iproute"],
      ...["client/mark", "client/policy", "gateway/config", "gateway/peers", "gateway/policy"],
    ],
    client: ["kernel", "routing", "iproute", "backends"],
    gateway: ["kernel", "routing", "iproute", "backends"],
    watch: ["kernel", "backends", "client"],
  },
  "kube/src": {
    timing: [],
    objects: [],
    transport: ["timing"],
    watch: ["timing", "objects", "transport"],
    apply: ["objects", "transport", "watch"],
    events: ["timing", "objects", "transport", "apply"],
    lead: ["timing", "objects", "transport"],
    controller: ["timing", "objects", "watch"],
  },
  "client-sidecar/src": {
    records: [],
    gateways: ["records"],
    client: ["records", "gateways"],
    slices: ["records", "gateways", "client"],
    cni: ["records", "client"],
    "node-agent": ["records", "gateways", "client", "slices", "cni"],
  },
  "operator/src": {
    "cluster-ranges": [],
    installation: [],
    slices: ["cluster-ranges"],
    egress: ["cluster-ranges", "slices"],
  },
};

/** Beside its folders, what puts them together: they know nothing of it. */
const WIRING: Readonly<Record<string, readonly string[]>> = {
  "operator/src": ["caches", "operator", "serve", "watches"],
};

const WORKSPACES = [...Object.keys(KNOWN), "test"];

interface Pattern {
  readonly message: string;
  readonly regex?: string;
  readonly group?: string[];
}

const EVERYWHERE: readonly Pattern[] = [
  { regex: `^(\\.\\./)+(${WORKSPACES.join("|")})/`, message: "import what its package exports" },
  { regex: "(^|/)main(\\.ts)?$", message: "a program is run, not imported" },
];

const otherWorkspaces = (known: readonly string[]): Pattern => ({
  group: ["@egress-nat/**", ...known.flatMap((name) => [`!@egress-nat/${name}`, `!@egress-nat/${name}/**`])],
  message: `this workspace knows ${known.join(", ") || "none of the others"}`,
});

const otherFolders = (folders: readonly string[], known: readonly string[]): Pattern => ({
  group: [
    ...folders.filter((folder) => !known.includes(folder)).map((folder) => `**/${folder}/**`),
    ...known.filter((name) => name.includes("/")).map((file) => `!**/${file}.ts`),
  ],
  message: `this folder knows ${known.join(", ") || "none beside it"}`,
});

function restrict(files: string[], ...patterns: readonly Pattern[]): OxlintOverride {
  return {
    files,
    rules: { "no-restricted-imports": ["error", { patterns: [...EVERYWHERE, ...patterns] }] },
  };
}

export default defineConfig({
  plugins: ["typescript"],
  categories: { correctness: "off" },
  rules: { "typescript/no-floating-promises": "error", "typescript/no-misused-promises": "error" },
  ignorePatterns: ["**/dist/**"],
  // Of those that a file is of, the last one holds.
  overrides: [
    restrict(["**/*.ts"]),
    ...Object.entries(KNOWN).map(([workspace, known]) =>
      restrict([`${workspace}/**/*.ts`], otherWorkspaces(known)),
    ),
    ...Object.entries(LAYERS).flatMap(([place, layers]) =>
      Object.entries(layers).map(([folder, known]) =>
        restrict(
          [`${place}/${folder}/**/*.ts`],
          otherWorkspaces(KNOWN[place.split("/")[0] ?? ""] ?? []),
          otherFolders(
            Object.keys(layers).filter((other) => other !== folder),
            known,
          ),
          ...(WIRING[place] ?? []).map((name) => ({
            group: [`../${name}.ts`, `../../${name}.ts`],
            message: "this folder does not know what puts folders together",
          })),
        ),
      ),
    ),
    restrict(["*/src/**/*.test.ts", "*/src/**/testing/*.ts", "*/examples/*.ts", "tools/**/*.test.ts"], {
      group: PROGRAMS.flatMap((name) => [`@egress-nat/${name}`, `@egress-nat/${name}/**`]),
      message: "only tests of the whole, in the workspace test, import programs",
    }),
    restrict(["test/bed/**/*.ts"], {
      group: ["../../**"],
      message: "tests stand on the bed, which knows none of them",
    }),
    {
      files: ["*/src/**/*.ts"],
      excludeFiles: ["**/*.test.ts", "**/testing/**"],
      rules: { "max-lines-per-function": ["error", { max: 60 }] },
    },
  ],
});
