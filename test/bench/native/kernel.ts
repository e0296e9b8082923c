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

function withoutTunnelLinks(step: Step): Step {
  if (!("file" in step) || step.file !== "ip") return step;
  const input = step.input
    ?.replaceAll(/^fou add .*\n/gm, "")
    .replaceAll(/addrgenmode none/g, "up")
    .replaceAll(/^(link add (\S+) group \d+) .*$/gm, "$1 type veth peer name p$2");
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
