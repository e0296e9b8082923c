import { z } from "zod";
import type { Kubectl } from "./kubectl.ts";
import { LineSession } from "./line-session.ts";

/** What a test pod can be asked to do: the functions of probe.py with their parameters. */
export type Probe =
  | { do: "udp"; address: string; port: number; text: string; timeout?: number; device?: string }
  | { do: "tcp"; address: string; port: number; timeout?: number; device?: string }
  | { do: "datagram"; address: string; port: number; size: number; timeout?: number }
  | { do: "exchange"; address: string; port: number; size: number; count?: number; timeout?: number }
  | { do: "resolve"; name: string }
  | { do: "run"; command: readonly string[]; timeout?: number }
  | { do: "start_transfer"; name: string; address: string; port: number }
  | { do: "transfer" | "stop_transfer"; name: string }
  | { do: "listen" | "heard"; port: number }
  | CraftedPacket;

/** A packet that no ordinary program sends. */
export type CraftedPacket =
  | { do: "fou" | "ip_in_ip"; via: string; source: string; destination: string; port: number; text: string }
  | { do: "forged"; source: string; destination: string; port: number; text: string };

/** Where test pods, and the servers of the internet, answer with the address of whoever asks. */
export const WHOAMI_PORT = 9000;

/** The address that the other side saw over each protocol, or the name of the error. */
export interface SeenAs {
  readonly tcp: string;
  readonly udp: string;
}

const Answer = z.union([z.object({ answer: z.string() }), z.object({ error: z.string() })]);
const Command = z.object({ code: z.int(), stdout: z.string(), stderr: z.string() });

/** How an endless transfer goes, or went. */
export const Transfer = z.object({
  roundTrips: z.int(),
  longestPauseSeconds: z.number(),
  broken: z.string().nullable(),
});
export type Transfer = z.infer<typeof Transfer>;

const PodAddresses = z.object({
  spec: z.object({ nodeName: z.string() }),
  status: z.object({ podIPs: z.array(z.object({ ip: z.string() })).min(1) }),
});

/** A running test pod. */
export class ProbePod {
  readonly name: string;
  readonly namespace: string;
  readonly node: string;
  readonly ipv4: string;
  readonly ipv6: string;
  readonly #kubectl: Kubectl;
  #session: LineSession | undefined;

  private constructor(
    kubectl: Kubectl,
    namespace: string,
    name: string,
    node: string,
    addresses: readonly string[],
  ) {
    this.#kubectl = kubectl;
    this.namespace = namespace;
    this.name = name;
    this.node = node;
    this.ipv4 = addresses.find((address) => address.includes(".")) ?? "";
    this.ipv6 = addresses.find((address) => address.includes(":")) ?? "";
  }

  /** Waits until a pod is ready. */
  static async ready(kubectl: Kubectl, namespace: string, name: string): Promise<ProbePod> {
    await kubectl.wait(["pod", name, "-n", namespace], "condition=Ready", 180_000);
    const pod = await kubectl.get(PodAddresses, "pod", name, "-n", namespace);
    const addresses = pod.status.podIPs.map(({ ip }) => ip);
    return new ProbePod(kubectl, namespace, name, pod.spec.nodeName, addresses);
  }

  /**
   * Has the pod do several things at once. All that one ProbePod is asked goes over one `kubectl exec`: to start a
   * process in a container takes seconds where nodes are emulated.
   *
   * @returns a result for each probe, in their order
   */
  async ask(probes: readonly Probe[]): Promise<unknown[]> {
    if (this.#session?.isOpen !== true) this.#session = new LineSession(this.#connect());
    const reply = await this.#session.ask(JSON.stringify(probes));
    return z.array(z.unknown()).length(probes.length).parse(JSON.parse(reply));
  }

  /** Hangs up; a process that has asked does not end by itself before. */
  close(): void {
    this.#session?.close();
  }

  /** Has the pod do one thing. */
  async askOne<T>(probe: Probe, result: z.ZodType<T>): Promise<T> {
    const [answer] = await this.ask([probe]);
    return result.parse(answer);
  }

  /**
   * Which address servers see that answer with the address of whoever asks.
   *
   * @param text carried by the datagrams
   * @param timeout of each probe, in seconds; absent: the probe's own
   * @returns one entry for each address, in their order
   */
  async seenBy(addresses: readonly string[], text = "who am I", timeout?: number): Promise<SeenAs[]> {
    const limit = timeout === undefined ? {} : { timeout };
    const probes = addresses.flatMap((address): Probe[] => [
      { do: "tcp", address, port: WHOAMI_PORT, ...limit },
      { do: "udp", address, port: WHOAMI_PORT, text, ...limit },
    ]);
    const answers = (await this.ask(probes)).map((answer) => Answer.parse(answer)).map(addressOrError);
    return addresses.map((_, index) => ({
      tcp: answers[2 * index] ?? "",
      udp: answers[2 * index + 1] ?? "",
    }));
  }

  #connect(): readonly string[] {
    const relay = ["socat", "-", "UNIX-CONNECT:/run/probe.sock"];
    return this.#kubectl.command(["exec", "-i", this.name, "-n", this.namespace, "--", ...relay]);
  }

  /** Runs a command in the pod; throws when it fails. */
  async run(...command: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.askOne({ do: "run", command }, Command);
    if (code !== 0)
      throw new Error(`${command.join(" ")} in pod ${this.name} exited with ${code}: ${stderr}`);
    return stdout;
  }
}

function addressOrError(answer: z.infer<typeof Answer>): string {
  return "answer" in answer ? answer.answer : answer.error;
}
