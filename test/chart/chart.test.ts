import { dirname } from "node:path";
import { HEALTH_PORTS, RUN_DIRECTORY, STATE_DIRECTORY } from "@egress-nat/crds";
import { beforeAll, describe, expect, test } from "vitest";
import { find, type Rendered, render, renderFailure } from "./render.ts";

let objects: readonly Rendered[];

beforeAll(async () => {
  objects = await render();
});

const podOf = (kind: string, name: string) => find(objects, kind, name).spec.template.spec;
const podsOf = (rendered: readonly Rendered[]): Rendered["spec"][] =>
  rendered.flatMap(({ kind, spec }) => (kind === "Pod" ? [spec] : (spec?.template?.spec ?? [])));
const isHook = ({ name }: { name: string }) => /^(uninstall|installation)/.test(name);
const environment = (container: { env: { name: string; value?: string }[] }) =>
  Object.fromEntries(container.env.map(({ name, value }) => [name, value]));

describe("the node agent", () => {
  const pod = () => podOf("DaemonSet", "egress-nat-node-agent");

  test("sees of its node what it needs, and network namespaces that come later", () => {
    const mounts = pod().containers[0].volumeMounts;
    expect(mounts.map(({ mountPath }: { mountPath: string }) => mountPath)).toEqual([
      "/run/netns",
      RUN_DIRECTORY,
      STATE_DIRECTORY,
      "/host/proc/sys/net",
      "/host/opt/cni/bin",
      "/host/etc/cni/net.d",
    ]);
    expect(mounts[0].mountPropagation).toBe("HostToContainer");
  });

  test("loads kernel modules in an init container that can do nothing else", () => {
    const [init] = pod().initContainers;
    expect(init.args).toEqual(["install-modules"]);
    expect(init.volumeMounts).toEqual([{ name: "modules", mountPath: "/lib/modules", readOnly: true }]);
  });

  test("runs on every node, cordoned ones too", () => {
    expect(pod()).toMatchObject({
      hostNetwork: true,
      priorityClassName: "system-node-critical",
      tolerations: [{ operator: "Exists" }],
    });
  });

  test("is not waited for by the operator: without an operator no agent is ready, and takes the startup taint off", async () => {
    const key = "example.com/not-ready";
    const tolerations = async (own: unknown, startupTaint = key) => {
      const values = { nodeAgent: { startupTaint }, operator: { tolerations: own } };
      return find(await render(values), "Deployment", "egress-nat-operator").spec.template.spec.tolerations;
    };
    const infra = { key: "infra", operator: "Exists" };
    expect(await tolerations([infra])).toEqual([infra, { key, operator: "Exists" }]);
    expect(await tolerations(null)).toEqual([{ key, operator: "Exists" }]);
    expect(await tolerations(null, "")).toEqual([]);
  });

  test("runs where its affinity says, and so does what cleans nodes", async () => {
    const affinity = {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: "type", operator: "NotIn", values: ["virtual"] }] },
          ],
        },
      },
    };
    const rendered = await render({ nodeAgent: { affinity } });
    for (const name of ["egress-nat-node-agent", "egress-nat-uninstall"]) {
      expect(find(rendered, "DaemonSet", name).spec.template.spec.affinity).toEqual(affinity);
    }
  });

  test("mounts the CNI directories that the values name where the agent looks for them", async () => {
    const rendered = await render({
      nodeAgent: { cniBinDir: "/var/lib/cni bin, too", cniConfDir: "/etc/cni" },
    });
    for (const name of ["egress-nat-node-agent", "egress-nat-uninstall"]) {
      const { volumes, containers } = find(rendered, "DaemonSet", name).spec.template.spec;
      expect(volumes).toContainEqual({
        name: "cni-bin",
        hostPath: { path: "/var/lib/cni bin, too", type: "DirectoryOrCreate" },
      });
      expect(volumes).toContainEqual({
        name: "cni-conf",
        hostPath: { path: "/etc/cni", type: "DirectoryOrCreate" },
      });
      expect(environment(containers[0])).toMatchObject({
        CNI_BIN_DIR: "/host/opt/cni/bin",
        CNI_CONF_DIR: "/host/etc/cni/net.d",
      });
    }
  });
});

describe("the programs", () => {
  test("have no privilege, a read-only root, and only some are the root user, with the capabilities they use", () => {
    const containers: Rendered[] = podsOf(objects).flatMap((pod) => [
      ...(pod.initContainers ?? []),
      ...pod.containers,
    ]);
    for (const { name, securityContext } of containers) {
      expect(securityContext.privileged ?? false, name).toBe(false);
      expect(securityContext, name).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
        seccompProfile: { type: "RuntimeDefault" },
      });
    }
    const asRoot = containers.filter(({ securityContext }) => securityContext.runAsNonRoot !== true);
    const capabilities = asRoot.map(({ name, securityContext }) => [name, securityContext.capabilities.add]);
    expect(capabilities.toSorted()).toEqual([
      ["install-modules", ["SYS_MODULE"]],
      ["node-agent", ["NET_ADMIN", "SYS_ADMIN", "NET_RAW"]],
      ["uninstall", undefined],
    ]);
  });

  test("have an image of another repository, or by its digest, where the values say so", async () => {
    const digest = `sha256:${"0".repeat(64)}`;
    const rendered = await render({
      image: {
        tag: "9.9",
        operator: { repository: "mirror/operator" },
        egressPod: { digest },
        nodeAgent: { digest },
      },
    });
    const [operator] = find(rendered, "Deployment", "egress-nat-operator").spec.template.spec.containers;
    expect(operator.image).toBe("ghcr.io/egress-nat/mirror/operator:9.9");
    expect(environment(operator)).toMatchObject({
      EGRESS_POD_IMAGE: `ghcr.io/egress-nat/egress-nat-egress-pod@${digest}`,
    });
    const [agent] = find(rendered, "DaemonSet", "egress-nat-node-agent").spec.template.spec.containers;
    expect(agent.image).toBe(`ghcr.io/egress-nat/egress-nat-node-agent@${digest}`);
  });

  test("have their images from one registry with one tag", async () => {
    const rendered = await render({ image: { registry: "registry.example/team", tag: "9.9" } });
    const text = JSON.stringify(rendered);
    expect(new Set(text.match(/[\w./]+\/egress-nat-[\w-]+:[\w.]+/g))).toEqual(
      new Set(
        ["operator", "egress-pod", "node-agent"].map(
          (name) => `registry.example/team/egress-nat-${name}:9.9`,
        ),
      ),
    );
  });

  test("are told the log level, and the operator what there is of the cluster's networks and how it upgrades", async () => {
    const rendered = await render({
      clusterRanges: ["10.244.0.0/16", "fd00:244::/56"],
      logLevel: "debug",
      operator: { maxConcurrentRollouts: 7 },
    });
    expect(
      environment(find(rendered, "Deployment", "egress-nat-operator").spec.template.spec.containers[0]),
    ).toMatchObject({
      CLUSTER_RANGES: "10.244.0.0/16,fd00:244::/56",
      SERVICE_ADDRESSES_IN_CLUSTER: "false",
      MAX_CONCURRENT_ROLLOUTS: "7",
    });
    for (const [kind, name] of [
      ["Deployment", "egress-nat-operator"],
      ["DaemonSet", "egress-nat-node-agent"],
    ] as const) {
      expect(environment(find(rendered, kind, name).spec.template.spec.containers[0])).toMatchObject({
        LOG_LEVEL: "debug",
      });
    }
  });

  test("are probed on the ports that they listen on", () => {
    const port = (kind: string, name: string) => podOf(kind, name).containers[0].ports[0].containerPort;
    expect(port("Deployment", "egress-nat-operator")).toBe(HEALTH_PORTS.operator);
    expect(port("DaemonSet", "egress-nat-node-agent")).toBe(HEALTH_PORTS.nodeAgent);
    expect(port("DaemonSet", "egress-nat-uninstall")).toBe(HEALTH_PORTS.nodeAgent);
  });
});

describe("the pods of a program", () => {
  const PROGRAMS = [
    [
      "operator",
      [
        "egress-nat-operator",
        "egress-nat-uninstall-check",
        "egress-nat-uninstall-wait",
        "egress-nat-installation-check",
      ],
    ],
    ["nodeAgent", ["egress-nat-node-agent", "egress-nat-uninstall"]],
  ] as const;

  test.each(PROGRAMS)(
    "%s have the labels and annotations of its values, beside our own",
    async (program, names) => {
      const own = { podLabels: { team: "network" }, podAnnotations: { "sidecar.istio.io/inject": "false" } };
      const rendered = await render({ [program]: own });
      const pods = rendered.flatMap(({ kind, metadata, spec }) => {
        const pod: Rendered["metadata"] | undefined = kind === "Pod" ? metadata : spec?.template?.metadata;
        return pod?.labels?.team === undefined ? [] : [{ name: metadata.name, pod }];
      });
      expect(pods.map(({ name }) => name).toSorted()).toEqual([...names].toSorted());
      for (const { pod } of pods) {
        expect(pod.annotations).toMatchObject(own.podAnnotations);
        expect(pod.labels).toMatchObject({ ...own.podLabels, "app.kubernetes.io/name": "egress-nat" });
      }
    },
  );

  test("have the priority that the values name", async () => {
    const rendered = await render({
      operator: { priorityClassName: "operators" },
      nodeAgent: { priorityClassName: "agents" },
    });
    const priority = (kind: string, name: string) =>
      find(rendered, kind, name).spec.template.spec.priorityClassName;
    expect(priority("Deployment", "egress-nat-operator")).toBe("operators");
    expect(priority("DaemonSet", "egress-nat-node-agent")).toBe("agents");
    expect(priority("DaemonSet", "egress-nat-uninstall")).toBe("agents");
  });

  test("ask for a quota that admits their priorities, where the values say so", async () => {
    const name = "egress-nat-priorities";
    expect(objects.some(({ metadata }) => metadata.name === name)).toBe(false);
    const classes = async (values: object) =>
      find(await render({ priorityQuota: true, ...values }), "ResourceQuota", name).spec.scopeSelector
        .matchExpressions[0].values;
    expect(await classes({})).toEqual(["system-cluster-critical", "system-node-critical"]);
    expect(await classes({ operator: { priorityClassName: "" } })).toEqual(["system-node-critical"]);
  });

  test("have that quota while the release is uninstalled, too: Helm has deleted the other one by then", async () => {
    const rendered = await render({ priorityQuota: true });
    const [quota, ofHook] = ["egress-nat-priorities", "egress-nat-uninstall-priorities"].map((name) =>
      find(rendered, "ResourceQuota", name),
    );
    expect(ofHook?.spec).toEqual(quota?.spec);
    expect(ofHook?.metadata.annotations).toMatchObject({
      "helm.sh/hook": "post-delete",
      "helm.sh/hook-weight": "0",
    });
  });

  test("say what they need, those of hooks too: a ResourceQuota admits no others", async () => {
    for (const { name, resources } of podsOf(objects).flatMap(({ containers }) => containers)) {
      expect(resources?.requests, name).toMatchObject({ cpu: expect.anything(), memory: expect.anything() });
    }
    const limits = { cpu: "1" };
    const rendered = await render({ hooks: { resources: { limits } } });
    const hooks = podsOf(rendered).flatMap(({ containers }) => containers.filter(isHook));
    expect(hooks).toHaveLength(4);
    for (const { resources } of hooks) expect(resources.limits).toMatchObject(limits);
  });

  test("are pulled with the Secrets that the values name", async () => {
    const rendered = await render({ image: { pullSecrets: ["registry"] } });
    const pods = podsOf(rendered);
    expect(pods.length).toBeGreaterThan(0);
    for (const { imagePullSecrets } of pods) expect(imagePullSecrets).toEqual([{ name: "registry" }]);
  });
});

test("a drain takes one operator at a time, and those that are not ready at once", () => {
  const { spec } = find(objects, "PodDisruptionBudget", "egress-nat-operator");
  expect(spec).toMatchObject({ maxUnavailable: 1, unhealthyPodEvictionPolicy: "AlwaysAllow" });
  const { labels } = find(objects, "Deployment", "egress-nat-operator").spec.template.metadata;
  expect(labels).toMatchObject(spec.selector.matchLabels);
});

describe("metrics", () => {
  test("of the operator are for the peers that the values name, where they ask for a policy", async () => {
    expect(objects.filter(({ kind }) => kind === "NetworkPolicy")).toEqual([]);
    const from = [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } } }];
    const rendered = await render({ metrics: { networkPolicy: { enabled: true, from } } });
    const { podSelector, policyTypes, ingress } = find(rendered, "NetworkPolicy", "egress-nat-operator").spec;
    expect(podSelector).toEqual(find(rendered, "Deployment", "egress-nat-operator").spec.selector);
    expect({ policyTypes, ingress }).toEqual({
      policyTypes: ["Ingress"],
      ingress: [{ from, ports: [{ protocol: "TCP", port: "health" }] }],
    });
  });

  test("of the operator are for nobody, where no peers are named", async () => {
    const rendered = await render({ metrics: { networkPolicy: { enabled: true } } });
    const { policyTypes, ingress } = find(rendered, "NetworkPolicy", "egress-nat-operator").spec;
    expect({ policyTypes, ingress }).toEqual({ policyTypes: ["Ingress"] });
  });

  test("of agents are on the address that the values name, and so are the probes", async () => {
    const agentOf = (rendered: readonly Rendered[]) =>
      find(rendered, "DaemonSet", "egress-nat-node-agent").spec.template.spec.containers[0];
    const probesOf = ({ startupProbe, readinessProbe, livenessProbe }: Rendered) =>
      [startupProbe, readinessProbe, livenessProbe].map(({ httpGet }) => httpGet.host);
    expect(environment(agentOf(objects))).not.toHaveProperty("HEALTH_ADDRESS");
    expect(probesOf(agentOf(objects))).toEqual([undefined, undefined, undefined]);
    const agent = agentOf(await render({ metrics: { agentAddress: "::1" } }));
    expect(environment(agent)).toMatchObject({ HEALTH_ADDRESS: "::1" });
    expect(probesOf(agent)).toEqual(["::1", "::1", "::1"]);
  });
});

describe("uninstalling", () => {
  test("is refused by a hook before anything is deleted, with its output shown", () => {
    expect(find(objects, "Job", "egress-nat-uninstall-check").metadata.annotations).toMatchObject({
      "helm.sh/hook": "pre-delete",
      "helm.sh/hook-output-log-policy": "hook-failed",
    });
  });

  test("can remove the agent's folders, because it mounts those that they are in", () => {
    const { volumes, containers } = podOf("DaemonSet", "egress-nat-uninstall");
    const mounts: { name: string; mountPath: string }[] = containers[0].volumeMounts;
    for (const directory of [RUN_DIRECTORY, STATE_DIRECTORY]) {
      const parent = dirname(directory);
      const { name } = mounts.find(({ mountPath }) => mountPath === `/host${parent}`) ?? {};
      expect(volumes).toContainEqual({ name, hostPath: { path: parent, type: "Directory" } });
    }
  });

  test("leaves no hook behind", () => {
    const hooks = objects.filter(({ metadata }) => metadata.annotations?.["helm.sh/hook"]);
    expect(hooks.length).toBeGreaterThan(0);
    for (const { metadata } of hooks) {
      expect(metadata.annotations?.["helm.sh/hook-delete-policy"]).toBe(
        "before-hook-creation,hook-succeeded",
      );
    }
  });

  test("waits for the nodes with an account of its own, because the operator's is gone by then", () => {
    const { serviceAccountName } = podOf("Job", "egress-nat-uninstall-wait");
    expect(find(objects, "ServiceAccount", serviceAccountName).metadata.annotations?.["helm.sh/hook"]).toBe(
      "post-delete",
    );
  });
});

describe("the values", () => {
  test.each([
    ["a misspelt key", { clusterRange: [] }, "clusterRange"],
    ["a range that is none", { clusterRanges: ["pods"] }, "/clusterRanges/0"],
    ["a prefix that is too long", { clusterRanges: ["10.0.0.0/8", "10.0.0.0/33"] }, "/clusterRanges/1"],
    ["an address for a range", { clusterRanges: ["fd00::1"] }, "/clusterRanges/0"],
    [
      "a label of our own",
      { operator: { podLabels: { "app.kubernetes.io/name": "mine" } } },
      "/operator/podLabels",
    ],
    [
      "an annotation that is no text",
      { nodeAgent: { podAnnotations: { a: true } } },
      "/nodeAgent/podAnnotations/a",
    ],
    ["an unknown value of a program", { nodeAgent: { hostNetwork: false } }, "/nodeAgent"],
    ["ranges as text", { clusterRanges: "10.0.0.0/8" }, "/clusterRanges"],
    ["no operator", { operator: { replicas: 0 } }, "/operator/replicas"],
    ["an unknown log level", { logLevel: "loud" }, "/logLevel"],
    ["a registry with a slash at its end", { image: { registry: "registry.example/" } }, "/image/registry"],
    ["an agent's address of the node", { metrics: { agentAddress: "10.0.0.1" } }, "/metrics/agentAddress"],
    ["an unknown way with invalid clients", { invalidClients: "Audit" }, "/invalidClients"],
    ["nodes that are no number", { nodeAgent: { maxUnavailable: "abc" } }, "/nodeAgent/maxUnavailable"],
    ["no node at a time", { nodeAgent: { maxUnavailable: 0 } }, "/nodeAgent/maxUnavailable"],
    ["misspelt resources", { operator: { resources: { limts: {} } } }, "/operator/resources"],
    ["a quantity that is none", { hooks: { resources: { requests: { cpu: "much" } } } }, "/hooks/resources"],
    ["a digest that is none", { image: { operator: { digest: "sha256:0" } } }, "/image/operator/digest"],
    ["a relative directory", { nodeAgent: { cniBinDir: "opt/cni/bin" } }, "/nodeAgent/cniBinDir"],
  ])("are refused with %s", async (_, values, place) => {
    expect(await renderFailure(values)).toContain(place);
  });
});
