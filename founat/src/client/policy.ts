import { type Family, mergeRanges, type Range, rangeOf } from "@egress-nat/addresses";
import { parseCidr, prefixesOf } from "../routing/cidr.ts";
import { carriedRanges, type Decision, NEVER_SENT, translatedRanges } from "../routing/coverage.ts";
import { normalizeCidrs } from "../routing/nesting.ts";
import type { ClientEgress } from "./config.ts";
import type { Mark, Pin } from "./mark.ts";
import { gatewaysOf } from "./tunnels.ts";

/** Why the guard refuses packets. */
export const REFUSAL_REASONS = [
  /** Of the client: it would have left around the tunnel, or there is no gateway, or that of its flow is gone. */
  "rejected",
  /** To the client, from where the Egresses' destinations are, and nobody listens. */
  "unheard",
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** Packets that a guard has refused since it was made. */
export type Refusals = Readonly<Record<RefusalReason, number>>;

/** What the guard of a client is told, whoever spells it. */
export interface ClientPolicy {
  readonly uplink: string;
  /** UDP port of the tunnel. */
  readonly port: number;
  /** On replies to inbound flows, which must not meet a tunnel. */
  readonly replies: Mark;
  /** Where flows stay: a mark of each link to a gateway. */
  readonly pins: readonly Pin[];
  readonly choices: readonly Choice[];
  /**
   * Where flows of a family begin that the routes still lead to a link which is nobody's choice: the pins that all of its
   * Egresses choose from. None where these differ, because nobody can tell whose the flow is.
   */
  readonly late: Readonly<Record<Family, readonly Pin[]>>;
  /** Whether all flows go where the routes lead: there is no other link that any could have begun on. */
  readonly oneWay: boolean;
  readonly families: Readonly<Record<Family, FamilyPolicy>>;
}

/** Where flows go. */
export type Ways = Pick<ClientPolicy, "pins" | "choices" | "late" | "oneWay">;

/** With which gateways flows begin that the routes lead to a link. */
export interface Choice {
  /** Name of the link. */
  readonly link: string;
  /** Any of them, at random. */
  readonly pins: readonly Pin[];
}

interface FamilyPolicy {
  /** Packets there leave through the tunnel or not at all. */
  readonly guarded: readonly Range[];
  /** Those of them where only flows that the client opens use the tunnel. */
  readonly originating: readonly Range[];
  /** Addresses that outer packets go to. */
  readonly gateways: readonly string[];
  /** Addresses that outer packets may come from. */
  readonly peers: readonly string[];
}

/** Who carries what of one family. */
export interface FamilyCoverage {
  readonly family: Family;
  readonly decisions: readonly Decision<ClientEgress>[];
  readonly carriers: ReadonlySet<ClientEgress>;
  /** The client's own address. */
  readonly local: string | undefined;
}

/** What is guarded of one family, given who carries what of both. */
export function familyPolicy(
  family: Family,
  coverage: Readonly<Record<Family, FamilyCoverage>>,
): FamilyPolicy {
  const { decisions, carriers } = coverage[family];
  const ranges = (which?: (egress: ClientEgress) => boolean) => {
    const carried = carriedRanges(decisions, which);
    if (family === "ipv4") return carried;
    return mergeRanges([...carried, ...translatedRanges(carriedRanges(coverage.ipv4.decisions, which))]);
  };
  const gateways = [...carriers].flatMap((egress) => gatewaysOf(family, egress));
  const peers = normalizeCidrs([...carriers].flatMap((egress) => egress.peers));
  return {
    guarded: mergeRanges([...ranges(), ...prefixesOf(family, NEVER_SENT).map(rangeOf)]),
    originating: ranges((egress) => egress.originatingOnly),
    gateways: [...new Set(gateways)],
    peers: peers
      .filter((peer) => parseCidr(peer).family === family)
      .map((peer) => peer.replace(/\/(32|128)$/, "")),
  };
}
