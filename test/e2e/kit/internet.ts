import { randomUUID } from "node:crypto";
import { execa } from "execa";
import { z } from "zod";
import type { SeenAs } from "../../bed/workload/probe-pod.ts";

/** Anything with one address of each family. */
export interface BothFamilies {
  readonly ipv4: string;
  readonly ipv6: string;
}

/** The addresses of all of them, each one's IPv4 before its IPv6. */
export function addressesOf(...targets: readonly BothFamilies[]): string[] {
  return targets.flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6]);
}

/** What a pod with its own address is seen as by one target of both families. */
export function asItself(pod: BothFamilies): SeenAs[] {
  return addressesOf(pod).map((address) => ({ tcp: address, udp: address }));
}

/** How the tests reach the internet and its books. */
export interface InternetAccess {
  readonly wide: BothFamilies;
  /** Inside the private ranges: what a narrow destination is about. */
  readonly narrow: BothFamilies;
  /** As narrow, in the range that the cluster may lie in as well. */
  readonly narrowTen: string;
  /** Behind a link that carries packets of 1400 bytes at most. */
  readonly lowMtu: BothFamilies;
  /** Where clouds serve the secrets of a node. */
  readonly metadata: string;
  /** What must run before a command to run it in the internet's network namespace. */
  readonly inside: readonly string[];
}

/** Where the servers of the internet send back what they get. */
export const ECHO_PORT = 7;

const Datagrams = z.array(z.object({ source: z.string() }));

/** Servers outside that answer with the address they saw, as the tests ask them. */
export class Internet {
  readonly wide: BothFamilies;
  readonly narrow: BothFamilies;
  readonly narrowTen: string;
  readonly lowMtu: BothFamilies;
  readonly metadata: string;
  readonly #inside: readonly string[];

  constructor({ wide, narrow, narrowTen, lowMtu, metadata, inside }: InternetAccess) {
    this.wide = wide;
    this.narrow = narrow;
    this.narrowTen = narrowTen;
    this.lowMtu = lowMtu;
    this.metadata = metadata;
    this.#inside = inside;
  }

  /**
   * Who sent datagrams that contain a text.
   *
   * @returns the source addresses, one for each datagram
   */
  async sendersOf(text: string): Promise<string[]> {
    const seen = await this.run(
      "curl",
      "--silent",
      "--fail",
      `http://127.0.0.1/seen?text=${encodeURIComponent(text)}`,
    );
    return Datagrams.parse(JSON.parse(seen)).map(({ source }) => source);
  }

  /**
   * Counts packets that reach the internet while something is done.
   *
   * @returns how many have a source address of each of the pods, in their order
   */
  async packetsFrom(pods: readonly BothFamilies[], task: () => Promise<void>): Promise<number[]> {
    const rules = pods.flatMap(({ ipv4, ipv6 }) => [`ip saddr ${ipv4} counter`, `ip6 saddr ${ipv6} counter`]);
    const chain = `chain arrivals { type filter hook prerouting priority raw; ${rules.join("; ")}; }`;
    // A test that has timed out goes on counting.
    const table = `count-${randomUUID()}`;
    await this.run("nft", `table inet ${table} { ${chain}; }`);
    try {
      await task();
      const counters = (await this.run("nft", "list", "table", "inet", table)).matchAll(/packets (\d+)/g);
      const counts = [...counters].map(([, count]) => Number(count));
      return pods.map((_, index) => (counts[2 * index] ?? 0) + (counts[2 * index + 1] ?? 0));
    } finally {
      await this.run("nft", "delete", "table", "inet", table);
    }
  }

  /** Runs a command out there. */
  async run(...command: readonly string[]): Promise<string> {
    const [file, ...args] = [...this.#inside, ...command] as [string, ...string[]];
    const { stdout } = await execa(file, args, { stdin: "ignore", timeout: 60_000 });
    return stdout;
  }
}
