import { cp, mkdtemp, rename, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exists } from "@egress-nat/tools/system/cache";
import { kubectlBinary } from "@egress-nat/tools/system/client-tools";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { execa } from "execa";
import type { TestProject } from "vitest/node";
import { type ControlPlane, startControlPlane } from "../cluster/control-plane.ts";
import { type ControlPlanePlan, etcdData } from "../cluster/control-plane-commands.ts";
import { freePorts } from "../system/free-ports.ts";
import type { ControlPlaneAction } from "./apiserver.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Path of an administrator's kubeconfig. */
    kubeconfig: string;
    /** URL of etcd, plain HTTP. */
    etcdUrl: string;
    /** Where `apiserver.ts` sends what should happen to the apiserver and etcd. */
    controlPlaneHandle: string;
  }
}

const CRDS = join(import.meta.dirname, "../../../crds/crds");

/** A plan for an apiserver and etcd on loopback, with ports of their own: as many as one likes run side by side. */
export async function loopbackPlan(folder: string): Promise<ControlPlanePlan> {
  const [etcd = 0, etcdPeer = 0, apiserver = 0, controllerManager = 0, scheduler = 0] = await freePorts(5);
  return {
    folder,
    address: "127.0.0.1",
    ports: { etcd, etcdPeer, apiserver, controllerManager, scheduler },
    serviceCidrs: ["10.96.0.0/16", "fd00:96::/112"],
    podCidrs: ["10.244.0.0/16", "fd00:244::/56"],
    controllers: false,
    kubernetes: "newest",
    lifetime: "owner",
  };
}

/**
 * Starts etcd and an apiserver on loopback, with the project's CRDs.
 *
 * @param folder for their state; the caller removes it
 */
export async function startApiserver(folder: string): Promise<ControlPlane> {
  const controlPlane = await startControlPlane(await loopbackPlan(folder));
  if (await exists(CRDS)) {
    const kubectl = [`--kubeconfig=${controlPlane.kubeconfig}`];
    await execa(await kubectlBinary(), [...kubectl, "apply", "--server-side", `--filename=${CRDS}`]);
    const wait = [...kubectl, "wait", "--for=condition=Established", "--timeout=30s", `--filename=${CRDS}`];
    // Asked before a CRD has any condition, kubectl does not wait but fails.
    await waitUntil(async () => execa(await kubectlBinary(), wait), {
      what: "the CRDs to be established",
      timeoutMs: 30_000,
    });
  }
  return controlPlane;
}

/** vitest's globalSetup of `*.api.test.ts`: a real apiserver with the project's CRDs, gone when the tests are. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "egress-nat-api-"));
  const controlPlane = await startApiserver(folder);
  const handle = await serveHandle(controlPlane);
  project.provide("kubeconfig", controlPlane.kubeconfig);
  project.provide("etcdUrl", controlPlane.etcdUrl);
  project.provide("controlPlaneHandle", `http://127.0.0.1:${(handle.address() as AddressInfo).port}`);
  return async () => {
    handle.close();
    await controlPlane.stop();
    await rm(folder, { recursive: true, force: true });
  };
}

async function withoutEtcd(controlPlane: ControlPlane, work: () => Promise<void>): Promise<void> {
  await controlPlane.kill("etcd");
  await work();
  await controlPlane.start("etcd");
}

// The tests run in other processes. What they started themselves would end with them, so they ask this one.
async function serveHandle(controlPlane: ControlPlane): Promise<Server> {
  const data = etcdData(controlPlane.plan);
  const backup = `${data}-backup`;
  const actions: Record<ControlPlaneAction, () => Promise<void> | void> = {
    "apiserver/kill": () => controlPlane.kill("apiserver"),
    "apiserver/start": () => controlPlane.start("apiserver"),
    "apiserver/pause": () => controlPlane.pause("apiserver"),
    "apiserver/resume": () => controlPlane.resume("apiserver"),
    "etcd/kill": () => controlPlane.kill("etcd"),
    "etcd/start": () => controlPlane.start("etcd"),
    "etcd/back-up": () => withoutEtcd(controlPlane, () => cp(data, backup, { recursive: true })),
    "etcd/restore": () =>
      withoutEtcd(controlPlane, async () => {
        await rm(data, { recursive: true });
        await rename(backup, data);
      }),
  };
  const server = createServer((request, response) => {
    const action = actions[(request.url ?? "").slice(1) as ControlPlaneAction];
    Promise.resolve(action?.()).then(
      () => response.writeHead(action === undefined ? 404 : 200).end(),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
