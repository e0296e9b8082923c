import { z } from "zod";
import type { VirtualMachine } from "../../bed/vm/virtual-machine.ts";

export const SECONDS = 1;

/** Of a fixed size, so that both ends acknowledge as often on either path: how often may decide more than the path does. */
const WINDOW = "300K";

const Tcp = z.object({ end: z.object({ sum_received: z.object({ bits_per_second: z.number() }) }) });
const Udp = z.object({
  end: z.object({ sum: z.object({ packets: z.number(), lost_packets: z.number(), seconds: z.number() }) }),
});

/** @returns what one TCP flow comes to, in Mbit/s */
export async function tcpThroughput(machine: VirtualMachine, netns: string, target: string): Promise<number> {
  const output = await iperf(machine, netns, target, `--window ${WINDOW}`);
  return Tcp.parse(output).end.sum_received.bits_per_second / 1e6;
}

/** @returns how many small packets of one UDP flow arrive per second */
export async function smallPackets(machine: VirtualMachine, netns: string, target: string): Promise<number> {
  const { sum } = Udp.parse(await iperf(machine, netns, target, "--udp --bitrate 0 --length 64")).end;
  return (sum.packets - sum.lost_packets) / sum.seconds;
}

async function iperf(
  machine: VirtualMachine,
  netns: string,
  target: string,
  options: string,
): Promise<unknown> {
  const command = `iperf3 --client ${target} --time ${SECONDS} ${options} --json`;
  return JSON.parse(await machine.run(`ip netns exec ${netns} ${command}`, { env: { TMPDIR: "/run" } }));
}
