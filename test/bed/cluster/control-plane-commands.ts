import { join } from "node:path";
import { z } from "zod";
import { KubernetesVersion } from "./kubernetes-binary.ts";

export const ControlPlaneComponent = z.enum(["etcd", "apiserver", "controller-manager", "scheduler"]);
export type ControlPlaneComponent = z.infer<typeof ControlPlaneComponent>;

/** Everything that the commands of a control plane depend on. */
export const ControlPlanePlan = z.object({
  /** The state folder: pki, kubeconfigs, etcd's data, logs and process records. */
  folder: z.string(),
  /** On which the apiserver listens, and which it tells to pods. */
  address: z.string(),
  ports: z.object({
    etcd: z.int(),
    etcdPeer: z.int(),
    apiserver: z.int(),
    controllerManager: z.int(),
    scheduler: z.int(),
  }),
  /** The first one's family is the cluster's primary family; the apiserver's address must be of it. */
  serviceCidrs: z.array(z.string()).min(1).max(2),
  podCidrs: z.array(z.string()).min(1).max(2),
  /** Also run the controller manager and the scheduler, without which no pod, node or finalizer gets anywhere. */
  controllers: z.boolean(),
  /** Path of the network namespace that everything runs in; absent: the caller's. */
  netns: z.string().optional(),
  kubernetes: KubernetesVersion.default("newest"),
  lifetime: z.enum(["owner", "detached"]),
});
export type ControlPlanePlan = z.infer<typeof ControlPlanePlan>;

/** The components of a plan, in the order in which they start. */
export function componentsOf(plan: ControlPlanePlan): readonly ControlPlaneComponent[] {
  return plan.controllers ? ["etcd", "apiserver", "controller-manager", "scheduler"] : ["etcd", "apiserver"];
}

/**
 * A component and what ends with it. Controllers under leader election, as clusters run them, end without an apiserver to
 * renew their lease at, and come back with fresh eyes; one that goes on takes what it missed for nodes that are lost.
 */
export function withDependents(component: ControlPlaneComponent): readonly ControlPlaneComponent[] {
  return component === "apiserver" ? [component, "controller-manager", "scheduler"] : [component];
}

export function apiserverUrl(plan: ControlPlanePlan): string {
  const host = plan.address.includes(":") ? `[${plan.address}]` : plan.address;
  return `https://${host}:${plan.ports.apiserver}`;
}

/** Path of the folder in which etcd keeps all that it holds. */
export function etcdData(plan: ControlPlanePlan): string {
  return join(plan.folder, "etcd");
}

export function etcdUrl(plan: ControlPlanePlan): string {
  return `http://127.0.0.1:${plan.ports.etcd}`;
}

/** The command of one component: subcommand and flags of the kubernetes binary. */
export function componentCommand(
  plan: ControlPlanePlan,
  component: ControlPlaneComponent,
): readonly string[] {
  const pki = (file: string): string => join(plan.folder, "pki", file);
  const kubeconfig = (name: string): string => join(plan.folder, "kubeconfig", name);
  switch (component) {
    case "etcd": {
      const peerUrl = `http://127.0.0.1:${plan.ports.etcdPeer}`;
      return [
        "etcd",
        `--data-dir=${etcdData(plan)}`,
        `--listen-client-urls=${etcdUrl(plan)}`,
        `--advertise-client-urls=${etcdUrl(plan)}`,
        `--listen-peer-urls=${peerUrl}`,
        `--initial-advertise-peer-urls=${peerUrl}`,
        `--initial-cluster=default=${peerUrl}`,
        // A test cluster does not outlive its machine; waiting for the disk is most of etcd's time.
        "--unsafe-no-fsync",
        // As kubeadm sets it: without it the apiserver has no bookmarks for what does not change. etcd 3.5, that of the
        // oldest Kubernetes, knows it by this name only.
        "--experimental-watch-progress-notify-interval=5s",
        "--log-level=warn",
      ];
    }
    case "apiserver":
      return [
        "kube-apiserver",
        `--etcd-servers=${etcdUrl(plan)}`,
        `--bind-address=${plan.address}`,
        `--advertise-address=${plan.address}`,
        `--secure-port=${plan.ports.apiserver}`,
        `--service-cluster-ip-range=${plan.serviceCidrs.join(",")}`,
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        // Without controllers nobody makes the ServiceAccounts that this plugin demands of every pod.
        ...(plan.controllers ? [] : ["--disable-admission-plugins=ServiceAccount"]),
        // The default reconciler refuses to publish a loopback address.
        ...(plan.address.startsWith("127.") ? ["--endpoint-reconciler-type=none"] : []),
        "--allow-privileged=true",
        `--client-ca-file=${pki("ca.crt")}`,
        `--tls-cert-file=${pki("apiserver.crt")}`,
        `--tls-private-key-file=${pki("apiserver.key")}`,
        `--kubelet-certificate-authority=${pki("ca.crt")}`,
        `--kubelet-client-certificate=${pki("kubelet-client.crt")}`,
        `--kubelet-client-key=${pki("kubelet-client.key")}`,
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc",
        `--service-account-key-file=${pki("service-accounts.pub")}`,
        `--service-account-signing-key-file=${pki("service-accounts.key")}`,
        "--profiling=false",
      ];
    case "controller-manager":
      return [
        "kube-controller-manager",
        `--kubeconfig=${kubeconfig("controller-manager")}`,
        "--bind-address=127.0.0.1",
        `--secure-port=${plan.ports.controllerManager}`,
        "--leader-elect=false",
        "--use-service-account-credentials",
        `--service-account-private-key-file=${pki("service-accounts.key")}`,
        `--root-ca-file=${pki("ca.crt")}`,
        "--allocate-node-cidrs",
        `--cluster-cidr=${plan.podCidrs.join(",")}`,
        `--service-cluster-ip-range=${plan.serviceCidrs.join(",")}`,
      ];
    case "scheduler":
      return [
        "kube-scheduler",
        `--kubeconfig=${kubeconfig("scheduler")}`,
        "--bind-address=127.0.0.1",
        `--secure-port=${plan.ports.scheduler}`,
        "--leader-elect=false",
      ];
  }
}
