/** Clients whose part of a node agent hears gateways, which are processes of their own. */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { beatBy, Heartbeats } from "@egress-nat/client-sidecar";
import { HeartbeatProber, HeartbeatResponder } from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { ipBatch } from "../../bed/system/network-namespace.ts";
import { type Gateway, gatewayAt, NAT } from "../native/egress-stores.ts";
import { SteeredClients, type Use } from "../native/steered-clients.ts";

/** Any that is free: no other program is in this network namespace. */
const PORT = 5556;
/** Of a heartbeat: gateways die at any moment between two. */
const PERIOD_MS = 200;
const SETTLE_MS = 1_000;

/** How long after the death of a gateway the last client did without it, in milliseconds. */
export interface Death {
  readonly steeredMs: number;
  readonly endedMs: number;
}

export class WatchingClients {
  readonly #gateways = [1, 2, 3].map(gatewayAt);
  readonly #victim = this.#gateways[0] as Gateway;
  readonly #processes = new Map<Gateway, ChildProcess>();
  readonly #prober = new HeartbeatProber();
  readonly #clients: SteeredClients;
  readonly #heartbeats: Heartbeats;
  #falseAlarms = 0;

  constructor(count: number) {
    this.#clients = new SteeredClients(count, this.#gateways, (address) => this.#heartbeats.pulse(address));
    this.#heartbeats = new Heartbeats({
      gateways: () => this.#gateways.map(({ name, addresses }) => ({ egress: NAT, name, addresses })),
      beat: beatBy(this.#prober, PORT),
      probe: (_, address) => this.#clients.probe(address),
      onChange: () => {
        this.#falseAlarms += this.#gateways.filter(
          (gateway) => gateway !== this.#victim && this.#isMissed(gateway),
        ).length;
        this.#clients.steer();
      },
      logger: createLogger({ name: "bench", level: "error" }),
    });
  }

  /** How often another gateway than the one that died was missed. */
  get falseAlarms(): number {
    return this.#falseAlarms;
  }

  /** Conntrack marks of the flows of the gateway that dies, one for each of its addresses. */
  get marksOfVictim(): readonly number[] {
    return this.#clients.marksTo(this.#victim);
  }

  /** Does something while all gateways have flows of all clients. */
  async during(work: () => Promise<void>): Promise<void> {
    const lines = this.#gateways.flatMap(({ addresses }) =>
      addresses.map((each) => `address add ${each} dev lo`),
    );
    await ipBatch(undefined, ["link set lo up", ...lines]);
    for (const gateway of this.#gateways) await this.#start(gateway);
    const ended = new AbortController();
    await this.#clients.during(async () => {
      const beating = this.#heartbeats.run(ended.signal);
      await this.#untilVictim((use) => use === "new");
      await work();
      ended.abort();
      await beating;
    });
    for (const process of this.#processes.values()) process.kill("SIGKILL");
    await this.#prober.close();
  }

  /**
   * Kills a gateway, and waits until clients do without it.
   *
   * @param cut what else is done at that moment
   */
  async die(cut: () => Promise<void> = async () => {}): Promise<Death> {
    await sleep(SETTLE_MS + PERIOD_MS * Math.random());
    await cut();
    const killedAt = performance.now();
    this.#processes.get(this.#victim)?.kill("SIGKILL");
    await this.#untilVictim((use) => use !== "new");
    const steeredMs = performance.now() - killedAt;
    await this.#untilVictim((use) => use === undefined);
    return { steeredMs, endedMs: performance.now() - killedAt };
  }

  /** Starts it again, and waits until it has new flows of all clients. */
  async revive(): Promise<void> {
    await this.#start(this.#victim);
    await this.#untilVictim((use) => use === "new");
  }

  #isMissed({ addresses }: Gateway): boolean {
    return addresses.some((address) => ["suspect", "dead"].includes(this.#heartbeats.pulse(address)));
  }

  #untilVictim(isTrue: (use: Use) => boolean): Promise<void> {
    return this.#clients.until(this.#victim, isTrue);
  }

  async #start(gateway: Gateway): Promise<void> {
    const { name, addresses } = gateway;
    const started = fork(process.argv[1] ?? "", ["gateway", ...addresses]);
    await Promise.race([
      once(started, "message"),
      once(started, "exit").then(() =>
        Promise.reject(new Error(`${name} cannot be at ${addresses.join(" and ")}`)),
      ),
    ]);
    this.#processes.set(gateway, started);
  }
}

/** What answers for a gateway until it is killed. */
export async function answerFor(hosts: readonly string[]): Promise<void> {
  process.on("disconnect", () => process.exit());
  for (const host of hosts) {
    await new HeartbeatResponder({ port: PORT, host, value: () => undefined }).listen();
  }
  process.send?.("ready");
}
