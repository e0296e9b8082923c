/** Open flows of a client, through the links that stand for its tunnels, and a server behind all of them. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { execa } from "execa";
import { z } from "zod";
import { LoadReport, loadArguments } from "../../chaos/load-report.ts";
import { type Round, roundOf } from "../../chaos/round.ts";
import { PEER } from "../native/kernel.ts";

const SERVER = "egress-nat-bench-server";
const TARGETS = ["203.0.113.1", "2001:db8::1"];
const DEAD = "inet dead";

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
   * @param client network namespace
   * @param program of test/chaos/load
   */
  static async during(client: string, program: string, work: (flows: Flows) => Promise<void>): Promise<void> {
    await ip([`netns add ${SERVER}`]);
    let server: ChildProcess | undefined;
    try {
      await connect(client);
      server = inNetns(SERVER, program, ["serve", ...TARGETS]);
      await once(server.stdout as NodeJS.ReadableStream, "data");
      await work(new Flows(client, program));
    } finally {
      server?.kill("SIGKILL");
      await ip([`netns del ${SERVER}`]);
    }
  }

  /**
   * Keeps flows open, and begins new ones, while something is done.
   *
   * @param harm is given what has the clock run
   */
  async measure(harm: (mark: () => Promise<void>) => Promise<void>): Promise<Round> {
    const load = inNetns(this.#client, this.#program, loadArguments({ targets: TARGETS, ...LOAD }));
    const lines = createInterface({ input: load.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
    const next = async () => {
      const { value, done } = await lines.next();
      if (done) throw new Error("the load program has ended");
      return value;
    };
    const say = async (word: string) => {
      load.stdin?.write(`${word}\n`);
      return next();
    };
    try {
      await next();
      await harm(async () => void (await say("mark")));
      return roundOf([LoadReport.parse(JSON.parse(await say("stop")))], [], 0);
    } finally {
      load.kill("SIGKILL");
    }
  }

  /** Loses what the client sends by the links that conntrack marks lead to. */
  async cut(marks: readonly number[]): Promise<void> {
    const links = await Promise.all(marks.map((mark) => this.#linkOf(mark)));
    const drop = `iifname { ${links.map((link) => PEER + link).join(", ")} } drop`;
    await inServer(
      "nft",
      `table ${DEAD} { chain arrivals { type filter hook prerouting priority raw; ${drop}; }; }`,
    );
  }

  async mend(): Promise<void> {
    await inServer("nft", "delete", "table", ...DEAD.split(" "));
  }

  async #linkOf(mark: number): Promise<string> {
    for (const family of ["-4", "-6"]) {
      const ask = async (...question: readonly string[]): Promise<unknown> =>
        JSON.parse((await execa("ip", ["-n", this.#client, family, "-json", ...question])).stdout);
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
  const { stdout } = await execa("ip", ["-n", client, "-json", "link", "show", "type", "veth"]);
  const names = Links.parse(JSON.parse(stdout)).map(({ ifname }) => ifname);
  const peers = names.filter((name) => name.startsWith(PEER));
  await ip(
    [...peers, "node0"].map((name) => `link set ${name} netns ${SERVER}`),
    client,
  );
  await ip(
    [
      ...["lo", "node0", ...peers].map((name) => `link set ${name} up`),
      ...peers.map((name) => `link set ${name} arp off`),
      ...TARGETS.map((target) => `address add ${target} dev lo`),
      "address add 10.244.1.1/24 dev node0",
      "address add fd00:244:1::1/64 dev node0 nodad",
    ],
    SERVER,
  );
}

async function ip(lines: readonly string[], netns?: string): Promise<void> {
  const where = netns === undefined ? [] : ["-n", netns];
  await execa("ip", [...where, "-batch", "-"], { input: lines.map((line) => `${line}\n`).join("") });
}

async function inServer(...command: readonly string[]): Promise<void> {
  await execa("ip", ["netns", "exec", SERVER, ...command]);
}

function inNetns(netns: string, program: string, args: readonly string[]): ChildProcess {
  return spawn("ip", ["netns", "exec", netns, program, ...args], { stdio: ["pipe", "pipe", "inherit"] });
}
