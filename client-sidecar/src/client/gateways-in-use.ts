/** The gateways that this node picks for its clients. */

import { familiesOf } from "@egress-nat/addresses";
import { isInvalid } from "@egress-nat/crds";
import type { WatchedGateway } from "../gateways/heartbeats.ts";
import type { EgressView, Gateway } from "../gateways/view.ts";
import { egressKey } from "../records/egress-key.ts";
import type { EgressReference } from "../records/schema.ts";
import type { PodNetworks } from "./networks.ts";
import type { ClientRegistry } from "./registry.ts";

/** Clients that ask through their tunnels: one may have a fault of its own. */
const MAX_ASKING = 3;

/** Those of Egresses that leave the pick to the agent, each once, with the addresses that have vanished of them. */
export function gatewaysInUse(
  registry: Pick<ClientRegistry, "values">,
  view: Pick<EgressView, "egress" | "gateways" | "vanishedGateways">,
): readonly WatchedGateway[] {
  return ofPickedEgresses(registry, view, (egress) =>
    rejoined([...view.gateways(egress), ...view.vanishedGateways(egress)]),
  );
}

/** The API may have dropped one in one family before the other. Of two addresses of a family one was the pod's before. */
function rejoined(gateways: readonly Gateway[]): readonly Pick<Gateway, "name" | "addresses">[] {
  const whole: { readonly name: string; readonly addresses: string[] }[] = [];
  for (const { name, addresses } of gateways) {
    const families = [...familiesOf(addresses)];
    const part = whole.find(
      (each) => each.name === name && !families.some((family) => familiesOf(each.addresses).has(family)),
    );
    if (part === undefined) whole.push({ name, addresses: [...addresses] });
    else part.addresses.push(...addresses);
  }
  return whole;
}

/** Those that the API names. */
export function namedGatewaysInUse(
  registry: Pick<ClientRegistry, "values">,
  view: Pick<EgressView, "egress" | "gateways">,
): readonly WatchedGateway[] {
  return ofPickedEgresses(registry, view, (egress) => view.gateways(egress));
}

function ofPickedEgresses(
  registry: Pick<ClientRegistry, "values">,
  view: Pick<EgressView, "egress">,
  gatewaysOf: (egress: EgressReference) => readonly Pick<Gateway, "name" | "addresses">[],
): readonly WatchedGateway[] {
  const recorded = registry.values().flatMap(({ egresses }) => egresses);
  const picked = recorded.filter(({ gatewaySelection }) => gatewaySelection === "Agent");
  const egresses = new Map(
    picked.map(({ namespace, name }) => [egressKey({ namespace, name }), { namespace, name }]),
  );
  return [...egresses.values()].flatMap((egress) => {
    const stored = view.egress(egress);
    const probesUplink = stored !== undefined && !isInvalid(stored) && stored.spec.uplinkProbe !== undefined;
    return gatewaysOf(egress).map(({ name, addresses }) => ({ egress, name, addresses, probesUplink }));
  });
}

/**
 * Asks the kernel in a gateway through the tunnels of some clients, of different namespaces where there are: what one
 * namespace's policies drop says nothing of the others.
 *
 * @param address of the gateway
 * @returns whether any was answered; undefined where none has a tunnel to it
 */
export async function probeGateway(
  registry: Pick<ClientRegistry, "ofEgress">,
  networks: Pick<PodNetworks, "hasTunnel" | "probeGateway">,
  egress: EgressReference,
  address: string,
): Promise<boolean | undefined> {
  const clients = registry.ofEgress(egress).filter(({ netns }) => networks.hasTunnel(netns, address));
  const [first, ...others] = shuffled(clients);
  if (first === undefined) return undefined;
  const elsewhere = others.filter(({ pod }) => pod.namespace !== first.pod.namespace);
  const asking = [...new Set([first, ...elsewhere, ...others])].slice(0, MAX_ASKING);
  const answers = await Promise.all(
    asking.map(({ netns }) => networks.probeGateway(netns, address).catch(() => undefined)),
  );
  if (answers.includes(true)) return true;
  return answers.includes(false) ? false : undefined;
}

function shuffled<T>(items: readonly T[]): readonly T[] {
  return items
    .map((item) => [Math.random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}
