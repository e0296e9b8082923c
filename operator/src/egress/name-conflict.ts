import type { Egress } from "@egress-nat/crds";
import { CHILD_RESOURCES, type ChildKind } from "./children/index.ts";
import type { ObservedChild } from "./observed.ts";
import { belongsTo } from "./plan.ts";

/** An object that the Egress needs has a name that is taken. */
export class NameConflict extends Error {
  constructor(egress: Pick<Egress, "metadata">, child: ChildKind, observed: ObservedChild) {
    const { name, namespace } = observed.metadata;
    const { kind, plural } = CHILD_RESOURCES[child];
    super(
      belongsTo(egress, observed)
        ? `${kind} ${namespace}/${name} exists and names this Egress as its owner, but another program has created it, ` +
            "most likely coil: the operator leaves it as it is; move its clients elsewhere and delete it, and the operator " +
            `creates its own: kubectl delete ${plural} -n ${namespace} ${name}`
        : `${kind} ${namespace}/${name} exists and is ${holderOf(observed)}: the operator leaves it as it is; ` +
            "rename or delete it, or give the Egress another name",
    );
    this.name = "NameConflict";
  }
}

function holderOf({ metadata }: ObservedChild): string {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller);
  return owner === undefined
    ? "not controlled by any Egress"
    : `controlled by ${owner.kind} ${owner.name} (${owner.uid})`;
}
