import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { expect } from "vitest";
import { z } from "zod";
import { type ProbePod, WHOAMI_PORT } from "../../bed/workload/probe-pod.ts";
import type { BothFamilies, Internet } from "./internet.ts";

/** A program of an emulated node may stand still for seconds. */
const PATIENCE_MS = 30_000;

let texts = 0;

/** A text that no other packet of this run carries. */
export function uniqueText(what: string): string {
  texts += 1;
  return `${what}-${process.pid}-${Date.now().toString(36)}-${texts}.`;
}

/**
 * Waits until packets that a pod sends now have been to the internet and back, v4 and v6: what it sent before has
 * arrived, or never will.
 */
export async function lateArrivals(pod: ProbePod, internet: Internet): Promise<void> {
  const haveBoth = async () => {
    const text = uniqueText("after");
    await pod.ask(
      [internet.wide.ipv4, internet.wide.ipv6].map((address) => ({
        do: "udp" as const,
        address,
        port: WHOAMI_PORT,
        text,
      })),
    );
    return (await internet.sendersOf(text)).length === 2;
  };
  await waitUntil(haveBoth, {
    what: `datagrams of ${pod.name} to reach the internet`,
    timeoutMs: PATIENCE_MS,
    intervalMs: 500,
  });
}

const Heard = z.object({ datagrams: z.array(z.object({ source: z.string(), text: z.string() })) });

/** A UDP port of a test pod, v4 and v6, and what arrives there. */
export class Ear {
  readonly #pod: ProbePod;
  readonly #port: number;

  private constructor(pod: ProbePod, port: number) {
    this.#pod = pod;
    this.#port = port;
  }

  static async open(pod: ProbePod, port: number): Promise<Ear> {
    await pod.ask([{ do: "listen", port }]);
    return new Ear(pod, port);
  }

  /** The senders of datagrams that contain a text. */
  async sendersOf(text: string): Promise<string[]> {
    const { datagrams } = await this.#pod.askOne({ do: "heard", port: this.#port }, Heard);
    return datagrams.filter((datagram) => datagram.text.includes(text)).map(({ source }) => source);
  }

  /** Has another pod send an ordinary datagram to every address of the port: the ear hears what it should hear. */
  async hears(sender: ProbePod, addresses: BothFamilies = this.#pod): Promise<void> {
    const text = uniqueText("control");
    await sender.ask(
      [addresses.ipv4, addresses.ipv6].map((address) => ({
        do: "udp" as const,
        address,
        port: this.#port,
        text,
        timeout: 0.5,
      })),
    );
    const heard = async () => (await this.sendersOf(text)).toSorted();
    await expect.poll(heard, { timeout: PATIENCE_MS }).toEqual([sender.ipv4, sender.ipv6].toSorted());
  }
}
