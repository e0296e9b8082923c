/** Clients whose part of a node agent hears gateways, which are processes of their own. */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { FAMILIES, type Family } from "@egress-nat/addresses";
import { beatBy, Heartbeats } from "@egress-nat/client-sidecar";
import { askUplinksBy, ping, Uplink } from "@egress-nat/egress-pod";
import { HeartbeatProber, HeartbeatResponder } from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { execa } from "execa";
import { ipBatch } from "../../bed/system/network-namespace.ts";
import { type Gateway, gatewayAt } from "../native/egress-stores.ts";
import { SteeredClients, type Use } from "../native/steered-clients.ts";

/** Any that is free: no other program is in this network namespace. */
const PORT = 5556;
/** Of a heartbeat: gateways die at any moment between two. */
const PERIOD_MS = 200;
const SETTLE_MS = 1_000;
const GATEWAYS = [1, 2, 3].map(gatewayAt);
const LOST = ["inet", "lost"];
/** What the API says of a gateway whose sandbox is made anew: how soon depends on kubelet and network. */
const MOVED = { ...gatewayAt(GATEWAYS.length + 1), name: gatewayAt(1).name, isStarting: true };
const MOVED_WITHIN_MS = 1_500;
const logger = createLogger({ name: "bench", level: "error" });

/** How long after a gateway came to harm the last client began no flow with it, in milliseconds. */
export interface Steered {
  readonly steeredMs: number;
}

/** How long after the death of a gateway the last client did without it. */
export interface Death extends Steered {
  readonly endedMs: number;
}

export class WatchingClients {
  readonly #victim = GATEWAYS[0] as Gateway;
  readonly #processes = new Map<Gateway, ChildProcess>();
  readonly #prober = new HeartbeatProber();
  readonly #clients: SteeredClients;
  readonly #heartbeats: Heartbeats;
  #falseAlarms = 0;

  constructor(count: number) {
    this.#clients = new SteeredClients(count, GATEWAYS, (address) => this.#heartbeats.pulse(address));
    this.#heartbeats = new Heartbeats({
      gateways: () => this.#clients.gateways.map((gateway) => ({ ...gateway, probesUplink: true })),
      beat: beatBy(this.#prober, PORT),
      probe: (_, address) => this.#clients.probe(address),
      onChange: () => {
        this.#falseAlarms += GATEWAYS.filter(
          (gateway) => gateway !== this.#victim && this.#isMissed(gateway),
        ).length;
        this.#clients.steer();
      },
      logger,
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
    const lines = GATEWAYS.flatMap((gateway) =>
      [...gateway.addresses, ...behind(gateway)].map((each) => `address add ${each} dev lo`),
    );
    await ipBatch(undefined, ["link set lo up", ...lines]);
    for (const gateway of GATEWAYS) await this.#start(gateway);
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
  async die(cut?: () => Promise<void>): Promise<Death> {
    const { harmedAt, steeredMs } = await this.#harm(
      () => this.#processes.get(this.#victim)?.kill("SIGKILL"),
      cut,
    );
    await this.#untilVictim((use) => use === undefined);
    return { steeredMs, endedMs: performance.now() - harmedAt };
  }

  /**
   * As {@link die}. Meanwhile the API names other addresses of the gateway.
   *
   * @param cut what else is done at that moment
   */
  async dieAndMove(cut: () => Promise<void> = async () => {}): Promise<Death> {
    const others = GATEWAYS.filter((gateway) => gateway !== this.#victim);
    let moved: Promise<void> | undefined;
    const death = await this.die(async () => {
      await cut();
      moved = sleep(MOVED_WITHIN_MS * Math.random()).then(() => this.#clients.tellOf([MOVED, ...others]));
    });
    await moved;
    return death;
  }

  /** Starts it again, and waits until it has new flows of all clients. */
  async revive(): Promise<void> {
    this.#clients.tellOf(GATEWAYS);
    await this.#start(this.#victim);
    await this.#untilVictim((use) => use === "new");
  }

  /**
   * Takes its way out from a gateway, and waits until clients begin no flow with it.
   *
   * @param cut what else is done at that moment
   */
  async loseUplink(cut?: () => Promise<void>): Promise<Steered> {
    const [ipv4, ipv6] = behind(this.#victim);
    const chain = `type filter hook output priority 0; ip daddr ${ipv4} drop; ip6 daddr ${ipv6} drop;`;
    const table = `table ${LOST.join(" ")} { chain out { ${chain} }; }`;
    const { steeredMs } = await this.#harm(() => execa("nft", [table]), cut);
    return { steeredMs };
  }

  /** Gives it back, and waits until the gateway has new flows of all clients. */
  async regainUplink(): Promise<void> {
    await execa("nft", ["delete", "table", ...LOST]);
    await this.#untilVictim((use) => use === "new");
  }

  /** Does harm to a gateway at any moment between two heartbeats, and waits until clients begin no flow with it. */
  async #harm(
    harm: () => unknown,
    cut: () => Promise<void> = async () => {},
  ): Promise<Steered & { readonly harmedAt: number }> {
    await sleep(SETTLE_MS + PERIOD_MS * Math.random());
    await cut();
    const harmedAt = performance.now();
    await harm();
    await this.#untilVictim((use) => use !== "new");
    return { harmedAt, steeredMs: performance.now() - harmedAt };
  }

  #isMissed({ addresses }: Gateway): boolean {
    return addresses.some((address) => ["suspect", "dead"].includes(this.#heartbeats.pulse(address)));
  }

  #untilVictim(isTrue: (use: Use) => boolean): Promise<void> {
    return this.#clients.until(this.#victim, isTrue);
  }

  async #start(gateway: Gateway): Promise<void> {
    const { name, addresses } = gateway;
    const started = fork(process.argv[1] ?? "", ["gateway", name]);
    await Promise.race([
      once(started, "message"),
      once(started, "exit").then(() =>
        Promise.reject(new Error(`${name} cannot be at ${addresses.join(" and ")}`)),
      ),
    ]);
    this.#processes.set(gateway, started);
  }
}

/** What a gateway probes: each its own, so that one can lose its way out. */
function behind({ name }: Gateway): readonly string[] {
  const number = name.slice("gateway-".length);
  return [`192.0.2.${number}`, `2001:db8:2::${number}`];
}

/** What answers for a gateway until it is killed. */
export async function answerFor(name: string): Promise<void> {
  process.on("disconnect", () => process.exit());
  const gateway = GATEWAYS.find((each) => each.name === name) as Gateway;
  const others = GATEWAYS.filter((each) => each !== gateway).map(({ addresses }) => addresses);
  const ask = askUplinksBy(new HeartbeatProber());
  const uplink = new Uplink({
    targets: () => behind(gateway),
    families: new Set<Family>(FAMILIES),
    askOthers: (signal) => ask(others, signal),
    isAlone: () => false,
    ping,
    recordEvent: () => undefined,
    logger,
  });
  for (const host of gateway.addresses) {
    await new HeartbeatResponder({ port: PORT, host, value: (key) => uplink.heartbeat(key) }).listen();
  }
  process.send?.("ready");
  await uplink.run(new AbortController().signal);
}
