/** Whether a pod may be a client, and of which Egresses: chains of checks over plain data. */

import { FAMILIES, type Family, familiesOf, familyName } from "@egress-nat/addresses";
import {
  CLIENT_ANNOTATION_PREFIX,
  CLIENT_UID,
  EGRESS_LABEL,
  GATEWAY_ANNOTATION,
  isApiAddress,
  isInvalid,
  labelValue,
  MAX_CLIENT_ADDRESSES,
  namespaceTest,
} from "@egress-nat/crds";
import { target } from "../gateways/targets.ts";
import type { EgressFacts, EgressView, Gateway, StoredEgress } from "../gateways/view.ts";
import { egressKey } from "../records/egress-key.ts";
import type { EgressReference } from "../records/schema.ts";
import { assertPasses, type Check, ClientError } from "./error.ts";
import type { PodReference } from "./pod.ts";

/** A pod that asks for Egresses. */
export interface Candidate {
  readonly pod: PodReference;
  /** What the API names it by. */
  readonly uid: string;
  /** By all of its networks so far: what a further one lacks, the first has. */
  readonly addresses: readonly string[];
  readonly isGateway: boolean;
}

/** A pod, and one of the Egresses that it asks for. */
interface Request {
  readonly reference: EgressReference;
  readonly egress: EgressFacts;
  readonly gateways: readonly Gateway[];
  readonly podNamespace: string;
  readonly addresses: readonly string[];
}

const isNoGateway: Check<Candidate> = ({ pod, isGateway }) =>
  isGateway
    ? {
        reason: "is-gateway",
        message: `pod ${nameOf(pod)} is a gateway of an Egress, and a gateway cannot be a client`,
        remedy: `remove the annotations ${CLIENT_ANNOTATION_PREFIX}* from spec.template of the Egress; kubectl get egress -n ${pod.namespace}`,
      }
    : undefined;

const hasAddress: Check<Candidate> = ({ pod, addresses }) =>
  addresses.length === 0
    ? {
        reason: "no-address",
        message: `pod ${nameOf(pod)} cannot be a client: the plugins before this one gave it no address`,
        remedy:
          "a client needs an address of the pod network: look at the other plugins of the node's conflist, and their IPAM",
      }
    : undefined;

/** A slice with more of them is refused as a whole, with all other clients in it. */
const hasRoom: Check<Candidate> = ({ pod, addresses }) =>
  addresses.length > MAX_CLIENT_ADDRESSES
    ? {
        reason: "too-many-addresses",
        message: `pod ${nameOf(pod)} cannot be a client: it has ${addresses.length} addresses, and a client can have ${MAX_CLIENT_ADDRESSES} at most`,
        remedy: "chain the plugin in the pod network only: look at the conflists of its other networks",
      }
    : undefined;

/** The schema of slices refuses such a one, and with it all other clients of the slice. */
const hasPlainAddresses: Check<Candidate> = ({ pod, addresses }) => {
  const mapped = addresses.find((address) => !isApiAddress(address));
  return mapped === undefined
    ? undefined
    : {
        reason: "address-mapped",
        message: `pod ${nameOf(pod)} cannot be a client: ${mapped} is an IPv4 address in IPv6's spelling`,
        remedy:
          "a plugin before this one has to give it as IPv4: look at the other plugins of the node's conflist",
      };
};

/** Only who writes a static pod gives it a UID. */
const hasPlainUid: Check<Candidate> = ({ pod, uid }) =>
  CLIENT_UID.test(uid)
    ? undefined
    : {
        reason: "uid-unusual",
        message: `pod ${nameOf(pod)} cannot be a client: its UID ${JSON.stringify(uid)} is not of 1 to 83 letters, digits, ".", ":", "_" and "-"`,
        remedy: "take metadata.uid out of the static pod's manifest: the kubelet gives it one",
      };

const allowsNamespace: Check<Request> = ({ reference: { namespace, name }, egress, podNamespace }) =>
  namespaceTest(egress)(podNamespace)
    ? undefined
    : {
        reason: "namespace-not-allowed",
        message: `pods of namespace ${podNamespace} may not use Egress ${namespace}/${name}: its allowedNamespaces do not select it`,
        remedy:
          `give the namespace a label that is selected, or remove the pod's annotation ${CLIENT_ANNOTATION_PREFIX}${namespace}; ` +
          `kubectl get egress -n ${namespace} ${name} -o yaml`,
      };

const sharesFamily: Check<Request> = ({ reference, egress, addresses }) => {
  const served = familiesOf(egress.spec.destinations);
  const own = familiesOf(addresses);
  if (FAMILIES.some((family) => served.has(family) && own.has(family))) return undefined;
  return {
    reason: "no-common-family",
    message: `Egress ${egressKey(reference)} has only ${namesOf(served)} destinations, but the pod has only ${namesOf(own)} addresses`,
    remedy: "give the Egress destinations of the pod's address family",
  };
};

function namesOf(families: ReadonlySet<Family>): string {
  return [...families].map(familyName).join(" and ");
}

const hasGateway: Check<Request> = ({ reference: { namespace, name }, egress, gateways, addresses }) => {
  if (egress.spec.clientStartup === "Immediate") return undefined;
  const reached = target(egress.status?.serviceIPs ?? [], gateways);
  const served = familiesOf(egress.spec.destinations);
  const own = familiesOf(addresses);
  if (FAMILIES.some((family) => served.has(family) && own.has(family) && reached[family] !== undefined)) {
    return undefined;
  }
  return {
    reason: "no-gateway",
    message: `Egress ${namespace}/${name} has no gateway that is ready`,
    remedy: `kubectl describe egress -n ${namespace} ${name}; kubectl get pods -n ${namespace} -l ${EGRESS_LABEL}=${labelValue(name)}`,
  };
};

const OF_POD = [isNoGateway, hasAddress, hasRoom, hasPlainAddresses, hasPlainUid];
const OF_EGRESS = [allowsNamespace, sharesFamily, hasGateway];

/** @throws ClientError where a pod that asks for an Egress cannot be a client, whatever the Egress is */
export function assertMayBeClient(candidate: Candidate): void {
  assertPasses(OF_POD, candidate);
}

/** @throws ClientError where the pod cannot be a client of the Egress now */
export function admitted(
  { pod, addresses }: Pick<Candidate, "pod" | "addresses">,
  reference: EgressReference,
  view: Pick<EgressView, "egress" | "gateways">,
): EgressFacts {
  const egress = understood(reference, view.egress(reference));
  const gateways = view.gateways(reference);
  assertPasses(OF_EGRESS, { reference, egress, gateways, podNamespace: pod.namespace, addresses });
  return egress;
}

/**
 * Any author of a pod can write the annotation, a label or an owner. But only some may make pods where an Egress is: that
 * namespace admits privileged ones, which may set the sysctls of a gateway by themselves.
 *
 * @throws ClientError
 */
export function assertMayBeGateway(pod: PodReference, view: Pick<EgressView, "hasEgressIn">): void {
  if (view.hasEgressIn(pod.namespace)) return;
  throw new ClientError({
    reason: "no-egress-in-namespace",
    message: `pod ${nameOf(pod)} has the annotation ${GATEWAY_ANNOTATION}, but there is no Egress in its namespace`,
    remedy: `only the operator sets it, on the gateways of an Egress: remove it; kubectl get egress -n ${pod.namespace}`,
  });
}

function understood(reference: EgressReference, egress: StoredEgress | undefined): EgressFacts {
  const { namespace, name } = reference;
  if (egress === undefined) {
    throw new ClientError({
      reason: "egress-missing",
      message: `Egress ${namespace}/${name} does not exist`,
      remedy: `create it, or correct the pod's annotation ${CLIENT_ANNOTATION_PREFIX}${namespace}; kubectl get egress -n ${namespace}`,
    });
  }
  if (!isInvalid(egress)) return egress;
  throw new ClientError({
    reason: "egress-not-understood",
    message: `Egress ${namespace}/${name} is not understood by this release: ${egress.invalid}`,
    remedy: `correct it, or use the release that it was written for: kubectl edit egress -n ${namespace} ${name}`,
  });
}

function nameOf({ namespace, name }: PodReference): string {
  return `${namespace}/${name}`;
}
