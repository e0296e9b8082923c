/** `installation-check`: what `helm test` runs. */

import { EGRESS_RESOURCE, NODE_AGENT, OPERATOR, SLICE_RESOURCE } from "@egress-nat/crds";
import {
  createTransport,
  KubeError,
  LEASE_RESOURCE,
  loadCredentials,
  resourcePath,
  type Transport,
} from "@egress-nat/kube";
import { OwnPod, type ProgramContext, parseEnvironment } from "@egress-nat/program";
import { z } from "zod";
import { daemonSetProgress } from "./daemon-set.ts";
import { definitionProblems } from "./definitions.ts";

const Lease = z.object({ spec: z.object({ holderIdentity: z.string().default("") }).prefault({}) });

/** Its findings are in the log by then. */
class InstallationIncomplete extends Error {
  readonly code = "InstallationIncomplete";

  constructor() {
    super("egress-nat does not work yet: see the lines above");
    this.name = "InstallationIncomplete";
  }
}

/** One thing that was looked at. */
export interface Finding {
  readonly ok: boolean;
  readonly message: string;
}

export async function installationCheck({ signal, logger }: ProgramContext): Promise<void> {
  const { POD_NAMESPACE } = parseEnvironment(OwnPod.pick({ POD_NAMESPACE: true }));
  const transport = createTransport({ credentials: await loadCredentials(), logger });
  const findings = await installationFindings(transport, POD_NAMESPACE, signal).finally(() =>
    transport.close(),
  );
  for (const { ok, message } of findings) logger[ok ? "info" : "error"](message);
  if (findings.some(({ ok }) => !ok)) throw new InstallationIncomplete();
}

/** Whether this release's API is served, the operator leads, and an agent serves every node. */
export async function installationFindings(
  transport: Transport,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  return Promise.all([
    ...[EGRESS_RESOURCE, SLICE_RESOURCE].map((resource) =>
      look(async () => {
        const path = resourcePath(resource, { namespace });
        await transport.request({ method: "GET", path, query: { limit: 1 }, signal });
        const problem = (await definitionProblems(transport, signal))[resource.plural];
        return { ok: problem === undefined, message: problem ?? `the API server serves ${resource.plural}` };
      }),
    ),
    look(async () => {
      const path = resourcePath(LEASE_RESOURCE, { namespace, name: OPERATOR });
      const { holderIdentity } = Lease.parse(await transport.request({ method: "GET", path, signal })).spec;
      return holderIdentity === ""
        ? { ok: false, message: "no operator leads" }
        : { ok: true, message: `the operator ${holderIdentity} leads` };
    }),
    look(async () => {
      const agent = { namespace, name: NODE_AGENT };
      const { ready, nodes, isDone } = await daemonSetProgress(transport, agent, signal);
      const message = `agents serve ${ready} of ${nodes} nodes`;
      return isDone && nodes > 0
        ? { ok: true, message }
        : { ok: false, message: `${message}: kubectl -n ${namespace} describe daemonset ${NODE_AGENT}` };
    }),
  ]);
}

async function look(check: () => Promise<Finding>): Promise<Finding> {
  try {
    return await check();
  } catch (error) {
    if (error instanceof KubeError) return { ok: false, message: error.message };
    throw error;
  }
}
