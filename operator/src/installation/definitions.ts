/** Whether the API server has the CustomResourceDefinitions of this release: Helm installs them, and never upgrades them. */

import {
  API_GROUP,
  API_VERSION,
  EGRESS_RESOURCE,
  Egress,
  EgressClientSlice,
  missingFields,
  SLICE_RESOURCE,
} from "@egress-nat/crds";
import { pause, retryableError, type Transport } from "@egress-nat/kube";
import type { Check, Logger } from "@egress-nat/program";
import { z } from "zod";

/** Every account may read it (ClusterRole system:discovery): https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3 */
const OPENAPI_PATH = `/openapi/v3/apis/${API_GROUP}/${API_VERSION}`;

const DEFINED = [
  [EGRESS_RESOURCE, Egress],
  [SLICE_RESOURCE, EgressClientSlice],
] as const;

const RECHECK_MS = 5_000;

/** Of definitions in order: somebody may put others in their place, as coil's manifests do. The document is large. */
const ORDERLY_RECHECK_MS = 120_000;

/** So many missing fields are named. */
const SHOWN = 4;

const OpenApi = z.object({
  components: z.object({
    schemas: z.record(
      z.string(),
      z.looseObject({
        "x-kubernetes-group-version-kind": z.array(z.object({ kind: z.string() })).default([]),
      }),
    ),
  }),
});

/**
 * @returns what is wrong with those that are not in order, by the resource's plural, for people
 * @throws KubeError NotFound where the API server serves none of them, InvalidResponse where its answer is not understood
 */
export async function definitionProblems(
  transport: Transport,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const served = OpenApi.safeParse(await transport.request({ method: "GET", path: OPENAPI_PATH, signal }));
  if (!served.success) {
    const reason = z.prettifyError(served.error).replaceAll("\n", " ");
    const message = `GET ${OPENAPI_PATH}: the answer is not an OpenAPI document of definitions: ${reason}`;
    throw retryableError("InvalidResponse", message, served.error);
  }
  const schemas = Object.values(served.data.components.schemas);
  const problems = DEFINED.flatMap(([{ plural, kind }, schema]) => {
    const found = schemas.find((each) =>
      each["x-kubernetes-group-version-kind"].some((known) => known.kind === kind),
    );
    const missing = found === undefined ? ["everything"] : missingFields(schema, found);
    return missing.length === 0 ? [] : [[plural, problemOf(plural, missing)]];
  });
  return Object.fromEntries(problems);
}

function problemOf(plural: string, missing: readonly string[]): string {
  const more = missing.length > SHOWN ? ` and ${missing.length - SHOWN} more` : "";
  return (
    `CustomResourceDefinition ${plural}.${API_GROUP} is not of this release, but of an earlier one or of coil: it lacks ` +
    `${missing.slice(0, SHOWN).join(", ")}${more}, so status is not stored and no client starts; run ` +
    "kubectl apply --server-side --force-conflicts -f config/helm/egress-nat/crds"
  );
}

/** Looks at them for as long as the operator runs: often until they are in order, and then now and again. */
export class DefinitionsCheck {
  readonly #transport: Transport;
  readonly #logger: Logger;
  #reasons: readonly string[] = ["the definitions of Egresses have not been read yet"];

  constructor(transport: Transport, logger: Logger) {
    this.#transport = transport;
    this.#logger = logger;
  }

  get check(): Check {
    return { ok: this.#reasons.length === 0, reasons: this.#reasons };
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    do {
      await this.#look(signal);
    } while (await pause(this.check.ok ? ORDERLY_RECHECK_MS : RECHECK_MS, signal));
  }

  async #look(signal: AbortSignal): Promise<void> {
    const before = this.#reasons;
    try {
      this.#reasons = Object.values(await definitionProblems(this.#transport, signal));
    } catch (error) {
      if (signal.aborted) return;
      // An answer that nobody has thought of must not end the operator: Egresses are served all the same.
      const reason = error instanceof Error ? error.message : String(error);
      this.#reasons = [`the definitions of Egresses cannot be read: ${reason}`];
    }
    if (this.check.ok || before.join() === this.#reasons.join()) return;
    this.#logger.warn({ reasons: this.#reasons }, "the CustomResourceDefinitions are not in order");
  }
}
