import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { API_GROUP, API_VERSION, CLIENT_ANNOTATION_PREFIX } from "@egress-nat/crds";
import type { Manifest } from "./kubectl.ts";
import { WHOAMI_PORT } from "./probe-pod.ts";

/** An Egress by name. */
export interface EgressName {
  readonly namespace: string;
  readonly name: string;
}

export function namespace(name: string): Manifest {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name } };
}

export function egress(name: EgressName, spec: Readonly<Record<string, unknown>>): Manifest {
  return { apiVersion: `${API_GROUP}/${API_VERSION}`, kind: "Egress", metadata: { ...name }, spec };
}

/** The annotations that make a pod a client of Egresses. */
export function clientOf(...egresses: readonly EgressName[]): Readonly<Record<string, string>> {
  const annotations: Record<string, string> = {};
  for (const { namespace, name } of egresses) {
    const key = `${CLIENT_ANNOTATION_PREFIX}${namespace}`;
    annotations[key] = annotations[key] === undefined ? name : `${annotations[key]},${name}`;
  }
  return annotations;
}

/** What a test pod may differ in. */
export interface PodOptions {
  readonly name: string;
  readonly namespace: string;
  readonly image: string;
  readonly node?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly capabilities?: readonly string[];
  readonly ports?: readonly Readonly<Record<string, unknown>>[];
}

/** Name of the ConfigMap with the program that test pods run; one in each namespace that has test pods. */
const PROBE = "probe";

export async function probeProgram(namespace: string): Promise<Manifest> {
  const program = await readFile(join(import.meta.dirname, "probe.py"), "utf8");
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: PROBE, namespace },
    data: { "probe.py": program },
  };
}

/** Quick to notice that the program is up; each look costs an emulated node something from then on. */
const PROBES = {
  startupProbe: { tcpSocket: { port: WHOAMI_PORT }, periodSeconds: 1, failureThreshold: 180 },
  readinessProbe: { tcpSocket: { port: WHOAMI_PORT }, periodSeconds: 30, timeoutSeconds: 5 },
};

/** A pod that does what the test asks of it; see probe.py. */
export function probePod(options: PodOptions): Manifest {
  return pod(
    options,
    {
      command: ["python3", "/probe/probe.py"],
      ports: options.ports ?? [],
      securityContext: { capabilities: { add: options.capabilities ?? [] } },
      ...PROBES,
      volumeMounts: [{ name: PROBE, mountPath: "/probe" }],
    },
    { volumes: [{ name: PROBE, configMap: { name: PROBE } }] },
  );
}

/**
 * A test pod that is root on its node: all of the node's namespaces, and its files under /host. For other pods it
 * is the node itself.
 */
export function nodeShell(options: PodOptions & { readonly node: string }): Manifest {
  return pod(
    options,
    {
      command: ["python3", "/probe/probe.py"],
      securityContext: { privileged: true },
      ...PROBES,
      volumeMounts: [
        { name: PROBE, mountPath: "/probe" },
        { name: "host", mountPath: "/host", mountPropagation: "HostToContainer" },
      ],
    },
    {
      hostNetwork: true,
      hostPID: true,
      tolerations: [{ operator: "Exists" }],
      volumes: [
        { name: PROBE, configMap: { name: PROBE } },
        { name: "host", hostPath: { path: "/" } },
      ],
    },
  );
}

/** A pod that runs the program of its image. */
export function programPod(options: PodOptions, args: readonly string[]): Manifest {
  return pod(options, { args }, {});
}

/** As {@link programPod}, to its end, once. If it fails its status has what it printed last. */
export function oneShotPod(options: PodOptions, args: readonly string[]): Manifest {
  return pod(
    options,
    { args, terminationMessagePolicy: "FallbackToLogsOnError" },
    { restartPolicy: "Never" },
  );
}

/** A pod that runs one shell script. */
export function scriptPod(options: PodOptions, script: string): Manifest {
  return pod(options, { command: ["bash", "-c", script] }, {});
}

/** Pods that run one shell script to its end, each once; the script knows its number as JOB_COMPLETION_INDEX. */
export function scriptJob(options: PodOptions, script: string, count: number, parallelism: number): Manifest {
  const { metadata, spec } = scriptPod(options, script);
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: options.name, namespace: options.namespace },
    spec: {
      completionMode: "Indexed",
      completions: count,
      parallelism,
      backoffLimit: 0,
      template: {
        metadata: { annotations: metadata.annotations, labels: metadata.labels },
        spec: { ...(spec as object), restartPolicy: "Never" },
      },
    },
  };
}

function pod(
  { name, namespace, image, node, annotations = {}, labels = {} }: PodOptions,
  container: Readonly<Record<string, unknown>>,
  spec: Readonly<Record<string, unknown>>,
): Manifest {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, annotations, labels },
    spec: {
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      // A selector, not spec.nodeName: the pod passes the scheduler, as a user's pods do.
      ...(node === undefined ? {} : { nodeSelector: { "kubernetes.io/hostname": node } }),
      containers: [{ name: "main", image, imagePullPolicy: "IfNotPresent", ...container }],
      ...spec,
    },
  };
}
