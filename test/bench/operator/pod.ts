import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { resourcePath, type Transport } from "@egress-nat/kube";
import { CHILD_RESOURCES } from "@egress-nat/operator";
import { CHART } from "@egress-nat/tools/chart";
import { parse } from "yaml";
import { z } from "zod";
import type { ControlPlane } from "../../bed/cluster/control-plane.ts";
import { MemoryCgroup } from "../../bed/system/memory-cgroup.ts";

const DEPLOYMENT = join(CHART, "templates/operator/deployment.yaml");

/** Not among the children, which come and go. */
const SERVICE_ACCOUNT = { namespace: "kube-system", name: "bench-operator" };
const TOKEN_SECONDS = 6 * 60 * 60;

/** Puts the files of a ServiceAccount where a kubelet puts them, for one process alone, and joins a cgroup. */
const INTO_POD = `
set -eu
mount -t tmpfs tmpfs /var/run
mkdir -p /var/run/secrets/kubernetes.io/serviceaccount
cp "$1"/* /var/run/secrets/kubernetes.io/serviceaccount/
echo $$ > "$2"
shift 2
exec "$@"
`;

const Values = z.object({
  operator: z.object({
    resources: z.object({ limits: z.object({ memory: z.string().regex(/^\d+Mi$/) }) }),
  }),
});

const TokenRequest = z.object({ status: z.object({ token: z.string() }) });

/**
 * What a pod gives the operator, without the pod: the credentials of a ServiceAccount, for which the program loads no
 * kubeconfig library, and the chart's NODE_OPTIONS and memory limit, by which Node sizes its heap.
 */
export class Pod {
  readonly environment: Readonly<Record<string, string>>;
  readonly #serviceAccount: string;
  readonly #cgroup: MemoryCgroup;

  private constructor(environment: Pod["environment"], serviceAccount: string, cgroup: MemoryCgroup) {
    this.environment = environment;
    this.#serviceAccount = serviceAccount;
    this.#cgroup = cgroup;
  }

  static async create(apiserver: ControlPlane, transport: Transport): Promise<Pod> {
    const folder = join(apiserver.plan.folder, "service-account");
    await mkdir(folder);
    await writeFile(join(folder, "token"), await administratorToken(transport));
    await writeFile(join(folder, "ca.crt"), await readFile(apiserver.ca));
    const { hostname, port } = new URL(apiserver.url);
    const environment = {
      KUBERNETES_SERVICE_HOST: hostname,
      KUBERNETES_SERVICE_PORT: port,
      NODE_OPTIONS: await nodeOptions(),
    };
    const cgroup = await MemoryCgroup.create(`egress-nat-bench-${process.pid}`, await memoryLimit());
    return new Pod(environment, folder, cgroup);
  }

  /** The command of a process in this pod. */
  command(program: readonly string[]): readonly string[] {
    return [
      ...["unshare", "--mount", "sh", "-c", INTO_POD, "sh"],
      ...[this.#serviceAccount, this.#cgroup.procs, ...program],
    ];
  }

  /** Once its processes have ended. */
  remove(): Promise<void> {
    return this.#cgroup[Symbol.asyncDispose]();
  }
}

async function administratorToken(transport: Transport): Promise<string> {
  const { serviceAccount } = CHILD_RESOURCES;
  const { namespace, name } = SERVICE_ACCOUNT;
  await transport.request({
    method: "POST",
    path: resourcePath(serviceAccount, { namespace }),
    body: { metadata: SERVICE_ACCOUNT },
  });
  await transport.request({
    method: "POST",
    path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    body: {
      metadata: { name },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ kind: "ServiceAccount", ...SERVICE_ACCOUNT }],
    },
  });
  const answer = await transport.request({
    method: "POST",
    path: resourcePath(serviceAccount, { namespace, name, subresource: "token" }),
    body: {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { expirationSeconds: TOKEN_SECONDS },
    },
  });
  return TokenRequest.parse(answer).status.token;
}

async function nodeOptions(): Promise<string> {
  const [, options] = /name: NODE_OPTIONS, value: "(.*)"/.exec(await readFile(DEPLOYMENT, "utf8")) ?? [];
  if (options === undefined) throw new TypeError(`${DEPLOYMENT} sets no NODE_OPTIONS`);
  return options;
}

/** Of the chart's operator, in bytes. */
async function memoryLimit(): Promise<number> {
  const values = Values.parse(parse(await readFile(join(CHART, "values.yaml"), "utf8")));
  return Number.parseInt(values.operator.resources.limits.memory, 10) * 2 ** 20;
}
