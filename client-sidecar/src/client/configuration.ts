/** From a pod's annotations and the Egresses they name to what its network namespace should be: pure functions. */

import { isIPv6 } from "node:net";
import {
  CLIENT_ANNOTATION_PREFIX,
  EGRESS_LABEL,
  FOU_PORT,
  isInvalid,
  labelValue,
  namespaceTest,
} from "@egress-nat/crds";
import {
  type Addresses,
  type ClientConfig,
  type ClientEgress,
  FAMILIES,
  type Family,
} from "@egress-nat/founat";
import type { Annotations } from "../cni/configuration.ts";
import { CniError, CniErrorCode } from "../cni/error.ts";
import {
  type EgressFacts,
  type EgressView,
  egressKey,
  type Gateway,
  type StoredEgress,
} from "../gateways/view.ts";
import type { ClientRecord, EgressReference, RecordedEgress } from "../records/record.ts";

/** RFC 1123 label: what names of namespaces and Egresses are. */
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/**
 * The Egresses that a pod opts in to, in the annotations' order, each once.
 *
 * @throws CniError 100 when an annotation is malformed
 */
export function parseClientAnnotations(annotations: Annotations): readonly EgressReference[] {
  const references = Object.entries(annotations)
    .filter(([key]) => key.startsWith(CLIENT_ANNOTATION_PREFIX))
    .flatMap(([key, value]) => parseClientAnnotation(key, value));
  return [...new Map(references.map((reference) => [egressKey(reference), reference])).values()];
}

function parseClientAnnotation(key: string, value: string): readonly EgressReference[] {
  const namespace = key.slice(CLIENT_ANNOTATION_PREFIX.length);
  const names = value.split(",").map((name) => name.trim());
  if (NAME.test(namespace) && names.every((name) => NAME.test(name))) {
    return names.map((name) => ({ namespace, name }));
  }
  throw new CniError(
    CniErrorCode.invalidPod,
    `the annotation ${key}: "${value}" does not name an Egress`,
    `write ${CLIENT_ANNOTATION_PREFIX}<namespace of the Egress>: <name>[,<name>...]`,
  );
}

/** What is kept of an Egress with each of its clients, for the time when the Egress is gone, or not understood. */
export function recordEgress(egress: EgressFacts): RecordedEgress {
  const { namespace, name } = egress.metadata;
  const { destinations, excludedDestinations = [], originatingOnly, fouSourcePortAuto } = egress.spec;
  return { namespace, name, destinations, excludedDestinations, originatingOnly, fouSourcePortAuto };
}

/** What is known of an Egress now, or was last known of one that is gone, or not understood any more. */
export function lastKnown(recorded: RecordedEgress, view: Pick<EgressView, "egress">): RecordedEgress {
  const egress = view.egress(recorded);
  return egress === undefined || isInvalid(egress) ? recorded : recordEgress(egress);
}

/**
 * Why a pod cannot be a client of an Egress now.
 *
 * @param podNamespace of the pod
 * @param addresses of the pod
 * @throws CniError 11 where it can be one later, 100 where it cannot
 */
export function assertUsable(
  reference: EgressReference,
  egress: StoredEgress | undefined,
  gateways: readonly Gateway[],
  podNamespace: string,
  addresses: readonly string[],
): asserts egress is EgressFacts {
  const { namespace, name } = reference;
  const key = egressKey(reference);
  if (egress === undefined) {
    throw new CniError(
      CniErrorCode.tryAgainLater,
      `Egress ${key} does not exist`,
      `create it, or correct the pod's annotation ${CLIENT_ANNOTATION_PREFIX}${namespace}; kubectl get egress -n ${namespace}`,
    );
  }
  if (isInvalid(egress)) {
    throw new CniError(
      CniErrorCode.tryAgainLater,
      `Egress ${key} is not understood by this release: ${egress.invalid}`,
      `correct it, or use the release that it was written for: kubectl edit egress -n ${namespace} ${name}`,
    );
  }
  if (!namespaceTest(egress)(podNamespace)) {
    throw new CniError(
      CniErrorCode.tryAgainLater,
      `pods of namespace ${podNamespace} may not use Egress ${key}: its allowedNamespaces do not select it`,
      `give the namespace a label that is selected, or remove the pod's annotation ${CLIENT_ANNOTATION_PREFIX}${namespace}; ` +
        `kubectl get egress -n ${namespace} ${name} -o yaml`,
    );
  }
  const served = familiesOf(egress.spec.destinations);
  const own = familiesOf(addresses);
  const common = FAMILIES.filter((family) => served.has(family) && own.has(family));
  if (common.length === 0) {
    throw new CniError(
      CniErrorCode.invalidPod,
      `Egress ${key} has only ${[...served].join()} destinations, but the pod has only ${[...own].join()} addresses`,
      "give the Egress destinations of the pod's address family",
    );
  }
  if (egress.spec.clientStartup === "Immediate") return;
  const gateway = reachable(egress.status?.serviceIPs ?? [], gateways);
  if (common.some((family) => gateway[family] !== undefined)) return;
  throw new CniError(
    CniErrorCode.tryAgainLater,
    `Egress ${key} has no gateway that is ready`,
    `kubectl describe egress -n ${namespace} ${name}; kubectl get pods -n ${namespace} -l ${EGRESS_LABEL}=${labelValue(name)}`,
  );
}

/**
 * What a client's network namespace should be. An Egress that is gone, or not understood any more, is guarded by what was
 * last known of it; in the second case its gateways serve on. One that the pod's namespace may not use has no gateway for
 * it: clients fail closed.
 */
export function clientConfig(
  record: Pick<ClientRecord, "ifname" | "pod" | "egresses">,
  view: EgressView,
): ClientConfig {
  return {
    uplink: record.ifname,
    egresses: record.egresses.map((recorded) => clientEgress(record.pod.namespace, recorded, view)),
    clusterRanges: view.clusterRanges,
  };
}

function clientEgress(podNamespace: string, recorded: RecordedEgress, view: EgressView): ClientEgress {
  const egress = view.egress(recorded);
  const known = lastKnown(recorded, view);
  const isAllowed = egress !== undefined && namespaceTest(egress)(podNamespace);
  const serviceIPs = isAllowed ? (egress.status?.serviceIPs ?? []) : [];
  const gateways = isAllowed ? view.gateways(recorded) : [];
  return {
    name: egressKey(recorded),
    destinations: known.destinations,
    excluded: known.excludedDestinations,
    gateways: [reachable(serviceIPs, gateways)],
    peers: [...new Set([...serviceIPs, ...gateways.flatMap(({ addresses }) => addresses)])].sort(),
    port: FOU_PORT,
    sourcePortAuto: known.fouSourcePortAuto,
    originatingOnly: known.originatingOnly,
  };
}

/** The Egresses of a client that its namespace may not use (any more), as people name them. */
export function refusedEgresses(
  { pod, egresses }: Pick<ClientRecord, "pod" | "egresses">,
  view: EgressView,
): string[] {
  return egresses.flatMap((recorded) => {
    const egress = view.egress(recorded);
    return egress === undefined || namespaceTest(egress)(pod.namespace) ? [] : [egressKey(recorded)];
  });
}

/** The Service's addresses of those families in which a gateway serves: to any other, packets would vanish. */
function reachable(serviceIPs: readonly string[], gateways: readonly Gateway[]): Addresses {
  const served = familiesOf(gateways.filter(({ serving }) => serving).flatMap(({ addresses }) => addresses));
  return Object.fromEntries(
    serviceIPs
      .map((address) => [familyOf(address), address] as const)
      .filter(([family]) => served.has(family)),
  );
}

function familiesOf(addresses: readonly string[]): ReadonlySet<Family> {
  return new Set(addresses.map(familyOf));
}

/** @param address an address or a CIDR */
function familyOf(address: string): Family {
  return isIPv6(address.split("/")[0] ?? "") ? "ipv6" : "ipv4";
}
