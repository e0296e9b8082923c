import type { Kernel, Step } from "@egress-nat/founat";

/**
 * A kernel that takes what it is told on a machine that has no FoU: veths stand for the tunnel links, and there are no
 * FoU ports. What is read, compared and found to be as it should be is the same otherwise.
 */
export function withoutTunnels(kernel: Kernel): Kernel {
  const native: Kernel = {
    ...kernel,
    run: (steps) => kernel.run(steps.map(withoutTunnelLinks)),
    read: async (steps) => {
      const answers = await kernel.read(steps.map(withoutFouShow));
      return answers.map((answer, index) =>
        steps[index] === withoutFouShow(steps[index] as Step) ? answer : withNoPorts(answer),
      );
    },
  };
  return native;
}

/** What the names of veths begin with whose other ends stand for tunnel links. */
export const PEER = "p";
/** Without ARP a veth sends to its own address, so both ends have the same. */
const ANY_MAC = "02:00:00:00:00:01";

function withoutTunnelLinks(step: Step): Step {
  if (!("file" in step) || step.file !== "ip") return step;
  const input = step.input
    ?.replaceAll(/^fou add .*\n/gm, "")
    .replaceAll(/addrgenmode none/g, "up")
    // As a tunnel link, it asks nobody for the address of the other end.
    .replaceAll(/^(link set \S+ mtu \d+) up$/gm, "$1 arp off up")
    .replaceAll(
      /^(link add (\S+) group \d+) .*$/gm,
      `$1 address ${ANY_MAC} type veth peer name ${PEER}$2 address ${ANY_MAC}`,
    );
  return { ...step, ...(input !== undefined && { input }) };
}

const FOU_SHOW = "fou show\n";

function withoutFouShow(step: Step): Step {
  if (!("file" in step) || step.input?.includes(FOU_SHOW) !== true) return step;
  return { ...step, input: step.input.replace(FOU_SHOW, "") };
}

/** `ip -json -batch` prints a line for each question: the third was the one for ports. */
function withNoPorts(answer: string): string {
  const [links = "", routes = "", ...rest] = answer.split("\n").filter(Boolean);
  return [links, routes, "[]", ...rest].join("\n");
}
