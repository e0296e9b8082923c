import { readdir } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { cniBed } from "./bed.ts";
import { POD_NETNS } from "./sandbox.ts";
import { parseAnswers, type RuntimeCommand, type Scenario, type StepAnswer } from "./scenario.ts";
import { NOT_ASKED, VERSION_CASES } from "./versions.ts";

const CACHE = "/run/cni-cache";

const bed = cniBed();

const COMMANDS: readonly RuntimeCommand[] = ["ADD", "CHECK", "STATUS", "GC", "DEL"];

describe.each(VERSION_CASES)("libcni with a chain of version $version", ({ version, answers, control }) => {
  test.each([
    ["egress-nat", answers],
    ["tuning", control],
  ])("%s answers as the table says", async (type, expected) => {
    const answered = await life(version, ["loopback", type]);
    const told = COMMANDS.map((command) => [command, outcome(type, command, answered[command])]);
    expect(Object.fromEntries(told)).toEqual(expected);
  });
});

const accepted = VERSION_CASES.filter(({ answers }) => answers.ADD === "succeeds");

test.each(accepted)(
  "a chain's result is of $version, and the same without egress-nat",
  async ({ version }) => {
    const without = (await life(version, ["loopback", "tuning"])).ADD.result;
    expect(without).toMatchObject({ cniVersion: version });
    for (const chain of [
      ["loopback", "tuning", "egress-nat"],
      ["loopback", "egress-nat", "tuning"],
    ]) {
      expect((await life(version, chain)).ADD.result).toEqual(without);
    }
  },
);

test.each(accepted)(
  "GC of $version removes what is not valid, and keeps the rest",
  async ({ version, answers }) => {
    const chain = ["loopback", "egress-nat"];
    const [kept, stale] = [attachment("kept"), attachment("stale")];
    const validAttachments = [{ containerID: "kept", ifname: "lo" }];
    const gc = { command: "GC", validAttachments } as const;
    const answered = await run(version, chain, [add(kept), add(stale), gc]);
    expect(answered.map(({ error }) => error)).toEqual([undefined, undefined, undefined]);
    expect(answered[2]?.executions).toEqual([
      ...["egress-nat DEL", "loopback DEL"],
      ...(answers.GC === NOT_ASKED ? [] : ["loopback GC", "egress-nat GC"]),
    ]);
    expect(await readdir(bed().sandbox.path(`${CACHE}/results`))).toEqual(["pods-kept-lo"]);
    await run(version, chain, [{ ...kept, command: "DEL" }]);
    expect(await readdir(bed().sandbox.path(`${CACHE}/results`))).toEqual([]);
  },
);

const attachment = (containerId: string) => ({ containerId, netns: POD_NETNS, ifname: "lo" });
const add = (to: ReturnType<typeof attachment>): Scenario["steps"][number] => ({ ...to, command: "ADD" });

/** An attachment from its ADD to its DEL. */
async function life(version: string, chain: readonly string[]): Promise<Record<RuntimeCommand, StepAnswer>> {
  const whole = attachment("c0ffee");
  const [ADD, CHECK, STATUS, GC, DEL] = await run(version, chain, [
    add(whole),
    { ...whole, command: "CHECK" },
    { command: "STATUS" },
    { command: "GC", validAttachments: [{ containerID: whole.containerId, ifname: whole.ifname }] },
    { ...whole, command: "DEL" },
  ]);
  if (ADD && CHECK && STATUS && GC && DEL) return { ADD, CHECK, STATUS, GC, DEL };
  throw new Error("the driver left out a step");
}

async function run(
  cniVersion: string,
  chain: readonly string[],
  steps: Scenario["steps"],
): Promise<readonly StepAnswer[]> {
  const configuration = { cniVersion, name: "pods", plugins: chain.map((type) => ({ type })) };
  const scenario: Scenario = {
    ...{ through: "libcni", pluginFolders: bed().programs.pluginFolders, cacheFolder: CACHE },
    ...{ configuration, steps },
  };
  const { stdout } = await bed().sandbox.run([bed().programs.driver], { input: JSON.stringify(scenario) });
  return parseAnswers(stdout);
}

function outcome(type: string, command: RuntimeCommand, { executions, error }: StepAnswer): string {
  if (!executions?.includes(`${type} ${command}`)) return NOT_ASKED;
  return error === undefined ? "succeeds" : `code ${error.code}`;
}
