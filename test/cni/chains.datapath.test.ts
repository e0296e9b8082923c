import { needCommands } from "@egress-nat/tools/system/debian-packages";
import { beforeAll, expect, test } from "vitest";
import { settingsFrom } from "../e2e/kit/settings.ts";
import { CHAINS, positions, withEgressNat } from "./chains.ts";
import { GREETING, live, RUNTIMES } from "./life.ts";
import { type CniPrograms, cniPrograms } from "./programs.ts";

const { long } = settingsFrom(process.env);

/**
 * By day each chain that forwards ports meets one of the runtimes, with egress-nat at its end; at night all chains meet
 * both, in all versions and with egress-nat in all places.
 */
const journeys = CHAINS.filter(({ forwards }) => long || forwards).flatMap((chain, index) => {
  const versions = long ? ["0.4.0", "1.0.0", "1.1.0"] : ["1.1.0"];
  const runtimes = RUNTIMES.filter((_, number) => long || number === index % RUNTIMES.length);
  const places = positions(chain).slice(0, long ? undefined : 1);
  return versions.flatMap((version) => runtimes.map((runtime) => ({ chain, version, runtime, places })));
});

let programs: CniPrograms;

beforeAll(async () => {
  await needCommands(["iptables"]);
  programs = await cniPrograms();
});

test.each(journeys)(
  "$chain.name: what $runtime is answered in $version, what a neighbour hears and what is left after \
DEL is the same with egress-nat",
  async ({ chain, places, ...circumstances }) => {
    const without = await live(programs, { ...circumstances, chain });
    expect(without.heard).toEqual({ added: GREETING, deleted: "" });
    for (const place of places) {
      expect(await live(programs, { ...circumstances, chain: withEgressNat(chain, place) })).toEqual(without);
    }
  },
);
