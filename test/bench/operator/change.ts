import { Cache, type KubeObject, ResourceClient, resourcePath, type Transport } from "@egress-nat/kube";
import { CHILD_RESOURCES, desiredChildren, type GatewaySettings } from "@egress-nat/operator";
import { z } from "zod";
import { progress } from "../progress.ts";
import { type Findings, milliseconds, ratioOf } from "../report.ts";
import { interleave } from "../samples.ts";
import type { OperatorProcess, OperatorProgram } from "./operator-process.ts";
import { BY_HAND, EGRESSES, egressName, logger, Metadata, NAMESPACE, type Population } from "./population.ts";

const LIMIT = { atMost: 3 };

const CHANGES = 25;

const { deployment } = CHILD_RESOURCES;

const Head = z.object({
  metadata: Metadata,
  spec: z.object({ replicas: z.int() }),
});
type Head = z.infer<typeof Head> & KubeObject;

/**
 * `spec.replicas` of one Egress among 1,000: from before it is written until a watch shows it in the Deployment. Beside
 * it, what one such write takes: that of a Deployment that is nobody's child.
 */
export async function measureChange(
  population: Population,
  program: OperatorProgram,
  settings: GatewaySettings,
): Promise<Findings> {
  progress(`${CHANGES} changes of one Egress`);
  const { transport } = population;
  const name = await createByHand(population, settings);
  const byHand = new ResourceClient(transport, deployment, (raw) => Head.parse(raw));
  const stop = new AbortController();
  const deployments = await watchDeployments(transport, stop.signal);
  await using operator = await program.start();
  await operator.hasReconciled(EGRESSES);
  let replicas = 1;
  const samples = await interleave(CHANGES, {
    egress: () => changeEgress(population, deployments, operator, ++replicas),
    write: () => duration(() => byHand.patch({ namespace: BY_HAND, name }, { spec: { replicas } })),
  });
  stop.abort();
  const egress = milliseconds("one Egress changes, until its Deployment has", samples.egress);
  const write = milliseconds("one write of a Deployment", samples.write);
  return {
    series: [egress, write],
    targets: [ratioOf("one change / one write", egress, write, LIMIT)],
  };
}

/** Waits with the next change until this one is finished, because it would take its share of the apiserver. */
async function changeEgress(
  population: Population,
  deployments: Cache<Head>,
  operator: OperatorProcess,
  replicas: number,
): Promise<number> {
  const name = egressName((replicas * 37) % EGRESSES);
  const applied = Promise.withResolvers<void>();
  const stopListening = deployments.onChange(({ object: { metadata, spec } }) => {
    if (metadata.name === name && spec.replicas === replicas) applied.resolve();
  });
  const durationMs = await duration(async () => {
    await population.egresses.patch({ namespace: NAMESPACE, name }, { spec: { replicas } });
    await applied.promise;
  });
  stopListening();
  await operator.until(`the status of ${name}`, () => population.hasSettled(name));
  return durationMs;
}

async function duration(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** Without the label by which the operator would see it. @returns its name */
async function createByHand({ transport, egresses }: Population, settings: GatewaySettings): Promise<string> {
  const name = egressName(0);
  const manifest = desiredChildren(await egresses.get({ namespace: NAMESPACE, name }), settings).deployment;
  const path = resourcePath(deployment, { namespace: BY_HAND });
  await transport.request({ method: "POST", path, body: { ...manifest, metadata: { name } } });
  return name;
}

async function watchDeployments(transport: Transport, signal: AbortSignal): Promise<Cache<Head>> {
  const deployments = new Cache<Head>({
    ...{ transport, resource: deployment, namespace: NAMESPACE, logger },
    parse: (raw) => Head.parse(raw),
  });
  void deployments.run(signal);
  await deployments.whenSynced();
  return deployments;
}
