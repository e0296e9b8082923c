import type { EgressName } from "../../bed/workload/manifests.ts";
import type { BothFamilies } from "./internet.ts";
import { gatewaysOf, nodeOf, sliceAddresses } from "./world.ts";

/** What the slices of an Egress's namespace and the kernels of its gateways hold of a client, a line for each. */
export async function tracesOf(egress: EgressName, { ipv4, ipv6 }: BothFamilies): Promise<string[]> {
  const found = (what: string, texts: readonly string[]) =>
    [ipv4, ipv6].filter((address) => texts.includes(address)).map((address) => `${what}: ${address}`);
  const kernels = await Promise.all(
    (await gatewaysOf(egress)).map(async (gateway) => {
      const node = await nodeOf(gateway);
      const dump = await node.inNetworkOf(
        gateway.ipv4,
        "nft list ruleset; echo FLOWS; conntrack -L 2>/dev/null",
      );
      const [elements = "", flows = ""] = dump.split("FLOWS");
      return [
        ...found(`element of ${gateway.name}`, elements.split(/[\s,={}]+/)),
        ...found(`flow of ${gateway.name}`, flows.split(/[\s=]+/)),
      ];
    }),
  );
  return [...found("slice", await sliceAddresses(egress)), ...kernels.flat()];
}
