import { isDeepStrictEqual } from "node:util";
import { FAMILIES, familyOf } from "@egress-nat/addresses";
import { guardSteering } from "../backends/nft/guard.ts";
import { linkName } from "../iproute/links.ts";
import type { Step } from "../kernel/step.ts";
import type { ClientConfig, ClientEgress, ClientGateway } from "./config.ts";
import { endFlows } from "./end-flows.ts";
import type { Pin } from "./mark.ts";
import { pinKey } from "./pins.ts";
import { type ClientFacts, type ClientPlan, planClient } from "./plan.ts";
import type { ClientPolicy } from "./policy.ts";
import { gatewaysOf } from "./tunnels.ts";

/**
 * What a look at a client's network namespace has left there. It is true until somebody else changes something, so that
 * it is good for what fails where it is not true.
 */
export interface KnownClient {
  /** @returns the mark that leads packets to a gateway, whoever gets new flows; undefined where there is no tunnel to it */
  markTo(address: string): number | undefined;
}

/** What leads flows elsewhere, and what is known once that is done. */
interface Steering {
  /** Empty where they go there already. */
  readonly steps: readonly Step[];
  readonly known: Known;
}

export class Known implements KnownClient {
  readonly #config: ClientConfig;
  readonly #facts: ClientFacts;
  readonly #plan: ClientPlan;
  /** What flows follow. */
  readonly #policy: ClientPolicy;

  /** @param policy where flows follow another one than the plan's */
  constructor(
    config: ClientConfig,
    facts: ClientFacts,
    plan: ClientPlan,
    policy: ClientPolicy = plan.policy,
  ) {
    const pins = new Map(plan.policy.pins.map(({ link, number }) => [pinKey(link), number]));
    this.#config = config;
    this.#facts = { ...facts, pins };
    this.#plan = plan;
    this.#policy = policy;
  }

  markTo(address: string): number | undefined {
    const link = this.#plan.links.find(({ remote }) => remote === address);
    if (link === undefined) return undefined;
    return this.#plan.policy.pins.find((pin) => pin.link === linkName(link))?.mark.value;
  }

  /**
   * What makes flows follow `config` by one transaction: new ones begin with other gateways, and those of gateways that
   * are not named any more end. Tunnels of spare gateways are not made.
   *
   * @returns undefined where it takes more: a tunnel that is not there, or `config` differs in anything but gateways
   * @throws FounatError `invalid-config`
   */
  steering(config: ClientConfig): Steering | undefined {
    if (!isDeepStrictEqual(withoutGateways(config), withoutGateways(this.#config))) return undefined;
    const { policy, links } = planClient(withGatewaysOf(this.#config, config), this.#facts);
    const isKnown = ({ link }: Pin) => this.#plan.policy.pins.some((pin) => pin.link === link);
    if (!policy.pins.every(isKnown)) return undefined;
    const named = config.egresses.flatMap(gatewayAddresses);
    const kept = links.filter(({ remote }) => remote !== undefined && named.includes(remote)).map(linkName);
    const steered = { ...policy, pins: policy.pins.filter(({ link }) => kept.includes(link)) };
    if (isDeepStrictEqual(waysOf(steered), waysOf(this.#policy))) return { steps: [], known: this };
    const gone = this.#policy.pins.filter(({ link }) => !kept.includes(link));
    return {
      steps: [guardSteering(steered, this.#policy), ...endFlows(gone)],
      known: new Known(this.#config, this.#facts, this.#plan, steered),
    };
  }
}

/** What of a configuration decides about more than gateways. Peers come and go with these, and wait for a look. */
function withoutGateways({ egresses, ...rest }: ClientConfig) {
  return { ...rest, egresses: egresses.map((egress) => ({ ...egress, gateways: [], peers: [] })) };
}

/**
 * `config` as far as there are tunnels: its Egresses have the gateways of a former one as well, because routes lead to these
 * until a look, and none that are spare.
 */
function withGatewaysOf(former: ClientConfig, config: ClientConfig): ClientConfig {
  const egresses = config.egresses.map((egress) => {
    const named = gatewayAddresses(egress);
    const same = former.egresses.find(({ name }) => name === egress.name);
    const others = (same === undefined ? [] : gatewayAddresses(same)).filter(
      (address) => !named.includes(address),
    );
    const gone = others.map(
      (address): ClientGateway => ({ [familyOf(address)]: address, flows: "existing" }),
    );
    const current = egress.gateways.map(
      (gateway): ClientGateway => (gateway.flows === "spare" ? { ...gateway, flows: "existing" } : gateway),
    );
    return { ...egress, gateways: [...current, ...gone] };
  });
  return { ...config, egresses };
}

function gatewayAddresses(egress: ClientEgress): string[] {
  return FAMILIES.flatMap((family) => gatewaysOf(family, egress));
}

function waysOf({ pins, choices }: ClientPolicy): Pick<ClientPolicy, "pins" | "choices"> {
  return { pins, choices };
}
