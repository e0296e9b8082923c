import { expect, test, vi } from "vitest";
import type { Kernel } from "../../kernel/kernel.ts";
import { tableListing } from "./listing.ts";

const runAside = vi.fn<Kernel["runAside"]>(async () => [
  "",
  JSON.stringify({ nftables: [{ table: { family: "inet", name: "guard" } }] }),
]);

function listed(comment: string) {
  return tableListing({ name: "guard", comment, sets: [], chains: [] }, { runAside } as unknown as Kernel);
}

test("nft is asked once for what is asked all the time, and nothing is kept of what is asked no more", async () => {
  await listed("of a client that stays");
  for (let gateway = 0; gateway < 1000; gateway += 1) {
    await listed(`of a client of gateway ${gateway}`);
    await listed("of a client that stays");
  }
  expect(runAside).toHaveBeenCalledTimes(1001);
  await listed("of a client of gateway 999");
  expect(runAside).toHaveBeenCalledTimes(1001);
  await listed("of a client of gateway 0");
  expect(runAside).toHaveBeenCalledTimes(1002);
});
