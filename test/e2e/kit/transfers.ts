import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { expect } from "vitest";
import { type Probe, type ProbePod, Transfer } from "../../bed/workload/probe-pod.ts";
import { ECHO_PORT, type Internet } from "./internet.ts";

const INTERVAL_MS = 250;
const PATIENCE_MS = 30_000;
/** Half of the apiserver's outage. Emulated nodes stall for seconds under load. */
const LONGEST_PAUSE_S = 30;

/** Endless transfers between clients and the internet, v4 and v6. */
export class Transfers {
  readonly #clients: readonly ProbePod[];
  readonly #names: readonly string[];

  private constructor(clients: readonly ProbePod[], names: readonly string[]) {
    this.#clients = clients;
    this.#names = names;
  }

  /** Starts them; they run when this returns. */
  static async start(internet: Internet, clients: readonly ProbePod[]): Promise<Transfers> {
    const probes = Object.entries(internet.wide).map(([name, address]): Probe => {
      return { do: "start_transfer", name, address, port: ECHO_PORT };
    });
    await Promise.all(clients.map((client) => client.ask(probes)));
    const transfers = new Transfers(clients, Object.keys(internet.wide));
    await transfers.goOn();
    return transfers;
  }

  /** Every transfer is unbroken, moves on, and has done so all the time. */
  async goOn(): Promise<void> {
    const before = await this.#roundTrips();
    const hasMovedOn = async () =>
      (await this.#roundTrips()).every((count, index) => count > (before[index] ?? 0));
    await waitUntil(hasMovedOn, {
      what: `every transfer to move on from ${before} round trips`,
      timeoutMs: PATIENCE_MS,
      intervalMs: INTERVAL_MS,
    });
  }

  /** Every transfer comes to be broken. */
  async break(): Promise<void> {
    await waitUntil(async () => (await this.#states()).every(({ broken }) => broken !== null), {
      what: "every transfer to be broken",
      timeoutMs: PATIENCE_MS,
      intervalMs: INTERVAL_MS,
    });
  }

  async stop(): Promise<void> {
    const probes = this.#names.map((name): Probe => ({ do: "stop_transfer", name }));
    await Promise.all(this.#clients.map((client) => client.ask(probes)));
  }

  async #roundTrips(): Promise<number[]> {
    return (await this.#states()).map(({ which, broken, longestPauseSeconds, roundTrips }) => {
      expect(broken, which).toBeNull();
      expect(longestPauseSeconds, which).toBeLessThan(LONGEST_PAUSE_S);
      return roundTrips;
    });
  }

  async #states(): Promise<(Transfer & { readonly which: string })[]> {
    const probes = this.#names.map((name): Probe => ({ do: "transfer", name }));
    const states = await Promise.all(this.#clients.map((client) => client.ask(probes)));
    return states.flatMap((ofClient, client) =>
      ofClient.map((state, transfer) => {
        const parsed = Transfer.parse(state);
        const which = `transfer ${this.#names[transfer]} of ${this.#clients[client]?.name}, after ${parsed.roundTrips} round trips`;
        return { ...parsed, which };
      }),
    );
  }
}
