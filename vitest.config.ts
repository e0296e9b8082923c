import { defineConfig } from "vitest/config";
import { SLOTS } from "./test/bed/datapath/slots.ts";
import DisruptiveLast from "./test/e2e/order.ts";

const fromSource = { resolve: { conditions: ["source"] } };
const source = {
  ...fromSource,
  ssr: fromSource,
  // Where Vitest runs what a project sets up globally.
  environments: { __vitest__: fromSource },
};
// CommonJS classes are imported as Node does it: @dot-i/k8s-operator exports its base class as module.exports.default.
const onRealSystems = {
  deps: { interopDefault: false },
  fileParallelism: false,
  testTimeout: 300_000,
  hookTimeout: 600_000,
};

// Not isolated: the files of a worker share what they import. To load it again for each takes as long as the unit tests
// themselves; and to begin a session with a test pod (e2e) takes seconds where nodes are emulated.
export default defineConfig({
  test: {
    // A file of what a test expects that is missing fails the test, unless vitest is asked to write it (--update).
    update: "none",
    sequence: { sequencer: DisruptiveLast },
    projects: [
      {
        ...source,
        test: {
          name: "unit",
          isolate: false,
          setupFiles: "test/patience.ts",
          // Generous: some tests start processes, and machines may be busy. On a fresh one a hook compiles what the plugin
          // stands on.
          testTimeout: 60_000,
          hookTimeout: 600_000,
          include: ["*/src/**/*.test.ts", "{tools,test}/**/*.test.ts"],
          exclude: [
            "**/node_modules/**",
            "**/*.api.test.ts",
            "**/*.datapath.test.ts",
            "**/*.systems.test.ts",
            "test/e2e/**",
          ],
        },
      },
      {
        ...source,
        test: {
          ...onRealSystems,
          name: "api",
          isolate: false,
          setupFiles: "test/patience.ts",
          include: ["*/src/**/*.api.test.ts", "test/**/*.api.test.ts"],
          globalSetup: "test/bed/api/control-plane.ts",
        },
      },
      {
        ...source,
        test: {
          ...onRealSystems,
          name: "datapath",
          fileParallelism: true,
          maxWorkers: SLOTS,
          setupFiles: "test/patience.ts",
          include: ["*/src/**/*.datapath.test.ts", "test/**/*.datapath.test.ts"],
          globalSetup: "test/bed/datapath/virtual-machine.ts",
        },
      },
      {
        ...source,
        test: {
          ...onRealSystems,
          // The first run builds what clusters consist of: Kubernetes alone takes eight minutes on two cores.
          hookTimeout: 1_800_000,
          name: "systems",
          include: ["test/**/*.systems.test.ts"],
        },
      },
      {
        ...source,
        test: {
          ...onRealSystems,
          name: "e2e",
          isolate: false,
          include: ["test/e2e/**/*.e2e.test.ts"],
          globalSetup: "test/e2e/cluster.ts",
        },
      },
    ],
  },
});
