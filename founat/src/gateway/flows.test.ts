import { expect, test } from "vitest";
import type { Step } from "../kernel/step.ts";
import { endFlows, liveFlows } from "./flows.ts";
import { Gateway } from "./gateway.ts";

const task = (step: Step) => ("file" in step ? step.args.at(-1) : undefined);

test("flows that a process left behind are ended by the next one, once, and those of clients are not", async () => {
  const ended: unknown[] = [];
  const answer = (step: Step): string => {
    if (task(step) === "end") ended.push("input" in step && step.input);
    return task(step) === "sources" ? "10.0.0.2\n10.0.0.3\n10.0.0.4\nfd00:a::2\n" : "";
  };
  const run = async (steps: readonly Step[]) => steps.map(answer);
  const config = { port: 5555, sourcePortAuto: false, destinations: ["0.0.0.0/0"], excluded: [] };
  const logger = { info: () => undefined, debug: () => undefined } as never;
  const gateway = new Gateway(config, { kernel: { run, read: run }, logger });
  const clients = [{ id: "a", addresses: ["10.0.0.2", "fd00:a::2"] }];
  await gateway.sync(clients);
  await gateway.sync(clients);
  expect(ended).toEqual(["10.0.0.3\n10.0.0.4\n"]);
});

test("flows of many addresses are ended in one process, those of none in no process", async () => {
  const inputs: unknown[] = [];
  const run = async ([step]: readonly Step[]) => [String(inputs.push(step && "input" in step && step.input))];
  await endFlows({ run }, ["10.1.0.2", "fd00:1::2"]);
  await endFlows({ run }, []);
  expect(inputs).toEqual(["10.1.0.2\nfd00:1::2\n"]);
});

test("a count that cannot be read is no count", async () => {
  await expect(liveFlows({ read: async () => [""] })).rejects.toMatchObject({ code: "unexpected-output" });
});
