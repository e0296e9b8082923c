/** Open flows of a client, through the links that stand for its tunnels, and a server behind all of them. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { execa } from "execa";
import { z } from "zod";
import { inNetns, ipBatch, netnsPath } from "../../bed/system/network-namespace.ts";
import { LoadDialogue } from "../../chaos/load-dialogue.ts";
import { loadArguments } from "../../chaos/load-report.ts";
import { type Round, roundOf } from "../../chaos/round.ts";
import { Cleanup } from "../cleanup.ts";
import { PEER } from "../native/kernel.ts";

const SERVER = "egress-nat-bench-server";
const TARGETS = ["203.0.113.1", "2001:db8::1"];
const DEAD = ["inet", "dead"];

/** To each address. */
const LOAD = { busy: 20, idle: 20, rate: 20 };
/** In words. */
export const FLOWS = `80 TCP flows, 2 of UDP, and ${2 * LOAD.rate} new connections per second`;

const Links = z.array(z.object({ ifname: z.string() }));
const Rules = z.array(z.object({ fwmark: z.string().optional(), table: z.string() }));
const Routes = z.array(z.object({ dev: z.string().optional() }));

export class Flows {
  readonly #client: string;
  readonly #program: string;

  private constructor(client: string, program: string) {
    this.#client = client;
    this.#program = program;
  }

  /**
   * Does something while a server is where the links of a client lead. What it answers arrives by the client's card.
   *
   * @param client name of its network namespace
   * @param program of test/chaos/load
   */
  static async during(client: string, program: string, work: (flows: Flows) => Promise<void>): Promise<void> {
    // Of a run that was killed.
    await ipBatch(undefined, [`netns del ${SERVER}`]).catch(() => {});
    await using _network = new Cleanup(() => ipBatch(undefined, [`netns del ${SERVER}`]));
    await ipBatch(undefined, [`netns add ${SERVER}`]);
    await connect(client);
    const server = start(SERVER, [program, "serve", ...TARGETS]);
    try {
      const ended = once(server, "exit").then(() =>
        Promise.reject(new Error("the server of the load has ended")),
      );
      await Promise.race([once(server.stdout, "data"), ended]);
      await Promise.race([work(new Flows(client, program)), ended]);
    } finally {
      server.kill("SIGKILL");
    }
  }

  /**
   * Keeps flows open, and begins new ones, while something is done.
   *
   * @param harm is given what has the clock run
   * @param isFelt whether the gateway had connections
   * @throws Error when it had none
   */
  async measure<T>(
    harm: (mark: () => Promise<void>) => Promise<T>,
    isFelt: (round: Round) => boolean,
  ): Promise<[T, Round]> {
    const options = { targets: TARGETS, ...LOAD };
    const load = start(this.#client, [this.#program, ...loadArguments(options)]);
    const dialogue = new LoadDialogue(load.stdout, (text) => load.stdin.write(text));
    try {
      await dialogue.ready();
      const done = await harm(() => dialogue.mark());
      const round = roundOf([await dialogue.stop()], [], 0);
      if (!isFelt(round)) throw new Error("no connection used the gateway that came to harm");
      return [done, round];
    } finally {
      load.kill("SIGKILL");
    }
  }

  /** Loses what the client sends by the links that conntrack marks lead to. */
  async cut(marks: readonly number[]): Promise<void> {
    const links = await Promise.all(marks.map((mark) => this.#linkOf(mark)));
    const drop = `iifname { ${links.map((link) => PEER + link).join(", ")} } drop`;
    const chain = `chain arrivals { type filter hook prerouting priority raw; ${drop}; }`;
    await run(SERVER, ["nft", `table ${DEAD.join(" ")} { ${chain}; }`]);
  }

  async mend(): Promise<void> {
    await run(SERVER, ["nft", "delete", "table", ...DEAD]);
  }

  async #linkOf(mark: number): Promise<string> {
    for (const family of ["-4", "-6"]) {
      const ask = async (...question: readonly string[]): Promise<unknown> =>
        JSON.parse(await run(this.#client, ["ip", family, "-json", ...question]));
      const table = Rules.parse(await ask("rule")).find(({ fwmark }) => Number(fwmark) === mark)?.table;
      if (table === undefined) continue;
      const routes = Routes.parse(await ask("route", "show", "table", table));
      const link = routes.find(({ dev }) => dev?.startsWith("fou"))?.dev;
      if (link !== undefined) return link;
    }
    throw new Error(`no link has the flows with mark ${mark}`);
  }
}

/** Moves the other ends of the client's card and links to the server. */
async function connect(client: string): Promise<void> {
  const links = Links.parse(JSON.parse(await run(client, ["ip", "-json", "link", "show", "type", "veth"])));
  const peers = links.map(({ ifname }) => ifname).filter((name) => name.startsWith(PEER));
  // What arrives by a link is answered by the card.
  await run(SERVER, ["sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0"]);
  const moved = [...peers, "node0"];
  await ipBatch(
    netnsPath(client),
    moved.map((name) => `link set ${name} netns ${SERVER}`),
  );
  await ipBatch(netnsPath(SERVER), [
    ...["lo", ...moved].map((name) => `link set ${name} up`),
    ...peers.map((name) => `link set ${name} arp off`),
    ...TARGETS.map((target) => `address add ${target} dev lo`),
    "address add 10.244.1.1/24 dev node0",
    "address add fd00:244:1::1/64 dev node0 nodad",
  ]);
}

async function run(netns: string, command: readonly string[]): Promise<string> {
  const [file, ...args] = inNetns(netnsPath(netns), command) as [string, ...string[]];
  return (await execa(file, args)).stdout;
}

type LoadProcess = ChildProcessByStdio<Writable, Readable, null>;

/** It ends with this program, however this ends. */
function start(netns: string, command: readonly string[]): LoadProcess {
  const owned = ["setpriv", "--pdeathsig", "KILL", "--", ...inNetns(netnsPath(netns), command)];
  const [file, ...args] = owned as [string, ...string[]];
  return spawn(file, args, { stdio: ["pipe", "pipe", "inherit"] });
}
