import { isDeepStrictEqual } from "node:util";
import { FAMILIES, type Family, familyOf } from "@egress-nat/addresses";
import { guardSteering } from "../backends/nft/guard-steering.ts";
import { linkName } from "../iproute/links.ts";
import { perl } from "../kernel/perl.ts";
import type { Step } from "../kernel/step.ts";
import type { ClientConfig, ClientEgress, ClientGateway } from "./config.ts";
import { endFlows } from "./end-flows.ts";
import { pinKey } from "./pins.ts";
import { type ClientPlan, planWays, type WayFacts } from "./plan.ts";
import type { Ways } from "./policy.ts";
import { choicesOf, gatewaysOf, withoutAddresses } from "./tunnels.ts";

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
  readonly #facts: WayFacts;
  readonly #plan: ClientPlan;
  /** What flows follow. */
  readonly #ways: Ways;

  /** @param ways where flows follow others than the plan's */
  constructor(config: ClientConfig, { uplink }: WayFacts, plan: ClientPlan, ways: Ways = plan.policy) {
    const pins = new Map(plan.policy.pins.map(({ link, number }) => [pinKey(link), number]));
    this.#config = config;
    this.#facts = { uplink, pins };
    this.#plan = plan;
    const { pins: pinned, choices, late } = ways;
    this.#ways = { pins: pinned, choices, late, oneWay: plan.policy.oneWay };
  }

  markTo(address: string): number | undefined {
    const link = this.#plan.links.find(({ remote }) => remote === address);
    if (link === undefined) return undefined;
    return this.#plan.policy.pins.find((pin) => pin.link === linkName(link))?.mark.value;
  }

  /**
   * What makes flows follow `config` by one transaction: new ones begin with other gateways, and those of gateways that
   * are not named any more end. No tunnels are made: gateways without one get no flows yet.
   *
   * @returns undefined where it takes more: no gateway for new flows has a tunnel or a route, or `config` differs in anything
   *   but gateways
   */
  steering(config: ClientConfig): Steering | undefined {
    if (!isDeepStrictEqual(withoutGateways(config), withoutGateways(this.#config))) return undefined;
    if (config.egresses.some((egress) => this.#isServedAnew(egress) || this.#takesOver(egress)))
      return undefined;
    const wanted = this.#planOf(config);
    const newcomers = this.#newcomers(wanted);
    const reached = newcomers.size === 0 ? config : without(newcomers, config);
    if (reached === undefined) return undefined;
    const plan = newcomers.size === 0 ? wanted : this.#planOf(reached);
    if (this.#newcomers(plan).size > 0) return undefined;
    const named = new Set(reached.egresses.flatMap(gatewayAddresses));
    const kept = new Set(
      plan.links.filter(({ remote }) => remote !== undefined && named.has(remote)).map(linkName),
    );
    const { choices, late } = plan;
    const steered = {
      ...this.#ways,
      choices,
      late,
      pins: plan.pins.filter(({ link }) => kept.has(link)),
    };
    if (isDeepStrictEqual(steered, this.#ways)) {
      const isAdmitted = config.egresses.every((egress) => this.#admitsAnswersFor(egress));
      return isAdmitted ? { steps: [], known: this } : undefined;
    }
    const gone = this.#ways.pins.filter(({ link }) => !kept.has(link));
    return {
      steps: perl([...guardSteering({ current: steered, former: this.#ways }), ...endFlows(gone)]),
      known: new Known(this.#config, this.#facts, this.#plan, steered),
    };
  }

  /** Whether no route leads to any gateway of an Egress that has some now. */
  #isServedAnew(egress: ClientEgress): boolean {
    const former = this.#config.egresses.find(({ name }) => name === egress.name);
    if (former === undefined) return false;
    return FAMILIES.some((family) => !takesNew(family, former) && takesNew(family, egress));
  }

  /** Whether it names an address that was another Egress's: routes of that one lead there. */
  #takesOver(egress: ClientEgress): boolean {
    const addressesOf = (egresses: readonly ClientEgress[]) => new Set(egresses.flatMap(gatewayAddresses));
    const own = addressesOf(this.#config.egresses.filter(({ name }) => name === egress.name));
    const others = addressesOf(this.#config.egresses.filter(({ name }) => name !== egress.name));
    return gatewayAddresses(egress).some((address) => others.has(address) && !own.has(address));
  }

  /** Gateways answer from their own addresses where the node has not translated what came, as with varying source ports. */
  #admitsAnswersFor({ name, sourcePortAuto, peers }: ClientEgress): boolean {
    const former = this.#config.egresses.find((egress) => egress.name === name);
    return !sourcePortAuto || peers.every((peer) => former?.peers.includes(peer));
  }

  #planOf(config: ClientConfig) {
    return planWays(this.#plan, withGatewaysOf(this.#config, config), this.#facts);
  }

  /** Addresses of gateways to which there is no tunnel yet. */
  #newcomers({ links }: ReturnType<typeof planWays>): ReadonlySet<string> {
    const known = new Set(this.#plan.links.map(linkName));
    return new Set(links.flatMap((link) => (known.has(linkName(link)) ? [] : (link.remote ?? []))));
  }
}

/**
 * `config` without some addresses. Where they are those of new flows, spare gateways take these meanwhile.
 *
 * @returns undefined where nobody would take them
 */
function without(addresses: ReadonlySet<string>, config: ClientConfig): ClientConfig | undefined {
  const egresses = config.egresses.map((egress) => {
    const reduced = withoutAddresses(addresses, egress);
    const lacking = FAMILIES.filter((family) => takesNew(family, egress) && !takesNew(family, reduced));
    const gateways = reduced.gateways.map((gateway): ClientGateway => {
      const isNeeded = lacking.some((family) => gateway[family] !== undefined);
      return gateway.flows === "spare" && isNeeded ? { ...gateway, flows: "new" } : gateway;
    });
    const isServed = lacking.every((family) => takesNew(family, { ...egress, gateways }));
    return isServed ? { ...egress, gateways } : undefined;
  });
  const served = egresses.filter((egress) => egress !== undefined);
  return served.length === egresses.length ? { ...config, egresses: served } : undefined;
}

function takesNew(family: Family, egress: ClientEgress): boolean {
  return choicesOf(family, egress).length > 0;
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
