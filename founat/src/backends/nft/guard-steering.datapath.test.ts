import type { Family } from "@egress-nat/addresses";
import { machine } from "@egress-nat/test/bed/datapath/machine";
import fc from "fast-check";
import { afterAll, beforeEach, expect, test } from "vitest";
import type { ClientConfig, ClientGateway } from "../../client/config.ts";
import { Known } from "../../client/known.ts";
import type { Pin } from "../../client/mark.ts";
import { planClient } from "../../client/plan.ts";
import type { ClientPolicy, Ways } from "../../client/policy.ts";
import { perl } from "../../kernel/perl.ts";
import { clientConfig, egress, clientFacts as facts } from "../../testing/configs.ts";
import { kernelIn } from "../../testing/topology.ts";
import { guardOf, READ_GUARD } from "./guard.ts";
import { guardSteering } from "./guard-steering.ts";
import { CLIENT_TABLE } from "./guard-table.ts";
import { parseTable } from "./state.ts";

const NETNS = "steered";

const kernel = kernelIn(NETNS);

beforeEach(async () => {
  await machine.run(`ip netns del ${NETNS} 2>/dev/null; ip netns add ${NETNS}`);
});
afterAll(() => machine.run(`ip netns del ${NETNS}`));

const gateways = [1, 2, 3, 4].map((number) => ({
  ipv4: `10.244.1.${number}`,
  ipv6: `fd00:244:1::${number}`,
}));
const [A = {}, B = {}] = gateways;

function policyOf(config: ClientConfig): ClientPolicy {
  return planClient(config, facts).policy;
}

/** Makes the guard. */
async function guard(policy: ClientPolicy): Promise<void> {
  await kernel.run([guardOf(policy).creation()]);
}

async function steer(current: Ways, former: Ways): Promise<void> {
  await kernel.run(perl(guardSteering({ current, former })));
}

/** How the guard differs from that of a policy; chains of gateways that are not named any more stay until a look. */
async function differencesFrom(policy: ClientPolicy): Promise<string[]> {
  const wanted = guardOf(policy);
  const [output = ""] = await kernel.read([READ_GUARD]);
  const { differences } = wanted.changes(parseTable(output), await wanted.listing(kernel));
  const words = differences.map(({ text }) => text);
  return words.filter((each) => !/ (via|take)_\d+ of \S+ is not founat's$/.test(each));
}

/** What a map of the guard holds, by its keys. */
async function entries(map: string): Promise<string[]> {
  const state = parseTable((await kernel.read([READ_GUARD]))[0] ?? "");
  return Array.from(state?.sets.get(map)?.elements ?? [], ({ text }) => text);
}

test("a guard that was steered is what nft would make of it, whatever was steered before", async () => {
  const policy = policyOf(clientConfig(egress({ gateways })));
  /** Some links have one choice, the others another one, as those of two Egresses. */
  const ways = fc
    .record({
      pins: fc.subarray([...policy.pins]),
      choices: fc.tuple(fc.subarray([...policy.pins]), fc.subarray([...policy.pins])),
    })
    .map(({ pins, choices: [these, those] }): Ways => {
      const choices = policy.choices.flatMap(({ link }, index) => {
        const family = pinOf(policy, link)?.family;
        const chosen = (index % 2 ? these : those).filter(
          (pin) => pin.family === family && pins.includes(pin),
        );
        return chosen.length === 0 ? [] : [{ link, pins: chosen }];
      });
      const late = (family: Family) =>
        choices.find(({ link }) => pinOf(policy, link)?.family === family)?.pins ?? [];
      return { pins, choices, late: { ipv4: late("ipv4"), ipv6: late("ipv6") }, oneWay: false };
    });
  await guard(policy);
  let former: Ways = policy;
  for (const current of fc.sample(ways, { numRuns: 12, seed: 1 })) {
    await steer(current, former);
    expect(await differencesFrom({ ...policy, ...current })).toEqual([]);
    former = current;
  }
});

test("where somebody has changed what it changes, that is told, and nothing is done", async () => {
  const policy = policyOf(clientConfig(egress({ gateways })));
  const [first, ...pins] = policy.pins;
  const current: Ways = { ...policy, pins, choices: [], late: { ipv4: [], ipv6: [] } };
  await guard(policy);
  await kernel.run([
    { file: "nft", args: [`delete element inet ${CLIENT_TABLE} kept { ${first?.mark.value} }`] },
  ]);
  const before = await kernel.read([READ_GUARD]);
  await expect(steer(current, policy)).rejects.toThrow(
    /failed: change \d+ of \d+: No such file or directory$/,
  );
  expect(await kernel.read([READ_GUARD])).toEqual(before);
});

test("an Egress that loses its gateways leaves its flows to no other Egress", async () => {
  const both = (...partners: readonly ClientGateway[]) =>
    clientConfig(
      egress({
        ...{ name: "partners/nat", destinations: ["203.0.113.0/24", "2001:db8:113::/48"] },
        gateways: partners,
      }),
      egress({ gateways: [B] }),
    );
  const plan = planClient(both(A), facts);
  await guard(plan.policy);
  let known = new Known(both(A), facts, plan);
  for (const left of [[{ ...A, flows: "existing" as const }], []]) {
    const steps = known.steering(both(...left));
    await kernel.run(steps?.steps ?? []);
    known = steps?.known ?? known;
    expect(await entries("choices")).toHaveLength(2);
    expect(await entries("choices_late")).toEqual([]);
  }
});

function pinOf({ pins }: Ways, link: string): Pin | undefined {
  return pins.find((pin) => pin.link === link);
}
