import { expect, test } from "vitest";
import type { Step } from "../kernel/step.ts";
import { Gateway } from "./gateway.ts";

const config = { port: 5555, sourcePortAuto: false, destinations: ["0.0.0.0/0"], excluded: [] };
const logger = { info: () => undefined, debug: () => undefined } as never;

test("clients whose transaction failed are written by the next one", async () => {
  const scripts: string[] = [];
  let failures = 1;
  const run = async (steps: readonly Step[]) => {
    for (const step of steps) if ("file" in step && step.file === "nft") scripts.push(step.input ?? "");
    if (failures-- > 0) throw new Error("nft failed");
    return steps.map(() => "");
  };
  const read = async (steps: readonly Step[]) => steps.map(() => "");
  const gateway = new Gateway(config, { kernel: { run, read }, logger });
  const clients = [{ id: "a", addresses: ["10.1.0.2"] }];
  await expect(gateway.sync(clients)).rejects.toThrow("nft failed");
  await gateway.sync(clients);
  await gateway.sync(clients);
  expect(scripts).toEqual([scripts[0], scripts[0]]);
  expect(scripts[0]).toContain("10.1.0.2");
});

test("another backend's packet filter that tells of nothing stays, because its clients would be lost", async () => {
  const run = async () => expect.unreachable();
  const read = async (steps: readonly Step[]) =>
    steps.map((step) => ("args" in step && step.args.includes("-t") ? "{}" : ""));
  const gateway = new Gateway({ ...config, backend: "iptables" }, { kernel: { run, read }, logger });
  await expect(gateway.init()).rejects.toMatchObject({
    code: "unexpected-output",
    message: "the packet filter of another backend cannot be read",
    retryable: true,
  });
});
