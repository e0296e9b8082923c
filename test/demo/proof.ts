import type { PlacedPod } from "../bed/workload/gateways.ts";
import type { SeenAs } from "../bed/workload/probe-pod.ts";

/** A pod that asked the internet which address it sees. */
export interface Witness extends PlacedPod {
  readonly isClient: boolean;
  readonly seenAs: { readonly ipv4: SeenAs; readonly ipv6: SeenAs };
  readonly example: Example;
}

/** A command that anybody can type, and what it printed. */
export interface Example {
  readonly command: string;
  readonly answer: string;
}

/** One line of the closing table. */
interface Row {
  readonly pod: string;
  readonly node: string;
  readonly gateway: string;
  readonly address: string;
}

export interface Proof {
  readonly rows: readonly Row[];
  /** What the internet saw of each pod: the pod, what it used, the address. */
  readonly statements: readonly (readonly string[])[];
  /** How a reader asks the same from one client and from one pod that is not a client. */
  readonly examples: readonly Example[];
  /** What does not hold; empty when the demo has proved its point. */
  readonly faults: readonly string[];
}

const FAMILIES = ["ipv4", "ipv6"] as const;

/** Holds when every client is seen with the address of a gateway and everybody else with their own. */
export function prove(witnesses: readonly Witness[], gateways: readonly PlacedPod[]): Proof {
  const rows: Row[] = [];
  const statements: string[][] = [];
  const faults: string[] = [];
  for (const witness of witnesses) {
    for (const family of FAMILIES) {
      const { tcp, udp } = witness.seenAs[family];
      statements.push([witness.name, `${family} TCP`, tcp], [witness.name, `${family} UDP`, udp]);
      const gateway = gateways.find((candidate) => candidate[family] === tcp);
      rows.push({
        pod: witness.name,
        node: witness.node,
        gateway: gateway === undefined ? "none" : `${gateway.name} on ${gateway.node}`,
        address: tcp,
      });
      if (tcp !== udp) faults.push(`${witness.name} is seen as ${tcp} over TCP and as ${udp} over UDP`);
      if (witness.isClient && gateway === undefined) {
        faults.push(`${witness.name} is a client and is seen as ${tcp}, which is no gateway's address`);
      }
      if (!witness.isClient && tcp !== witness[family]) {
        faults.push(
          `${witness.name} is no client and is seen as ${tcp} instead of its own ${witness[family]}`,
        );
      }
    }
    const { example, seenAs } = witness;
    if (example.answer !== seenAs.ipv4.tcp) {
      faults.push(`${example.command} printed ${example.answer}, and not ${seenAs.ipv4.tcp}`);
    }
  }
  const examples = [true, false].flatMap((isClient) => {
    const first = witnesses.find((witness) => witness.isClient === isClient);
    return first === undefined ? [] : [first.example];
  });
  return { rows, statements, examples, faults };
}
