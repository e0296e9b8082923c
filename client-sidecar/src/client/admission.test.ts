import { describe, expect, it } from "vitest";
import type { EgressFacts, Gateway, StoredEgress } from "../gateways/view.ts";
import { egress, notUnderstood } from "../testing/egress.ts";
import { gateway } from "../testing/gateway.ts";
import { admitted, assertMayBeClient, assertMayBeGateway } from "./admission.ts";
import type { RefusalReason } from "./error.ts";

const POD = { namespace: "apps", name: "web" };
const NAT = { namespace: "internet", name: "nat" };
const READY = gateway({ addresses: ["10.244.1.7", "fd00:244:1::7"] });
const DRAINING = gateway({ name: "nat-2", addresses: ["10.244.1.8"], ready: false, terminating: true });
const DEAD = gateway({ name: "nat-3", addresses: ["10.244.1.9"], ready: false, serving: false });

/** The admission of a pod of namespace apps. */
function admission(
  object: StoredEgress | undefined,
  gateways: readonly Gateway[],
  addresses: readonly string[],
): () => EgressFacts {
  return () => admitted({ pod: POD, addresses }, NAT, { egress: () => object, gateways: () => gateways });
}

const BOUNDED = { allowedNamespaces: { matchLabels: { egress: "allowed" } } };

describe("an Egress is usable", () => {
  const both = ["10.244.0.5", "fd00:244::5"];
  const dual = { destinations: ["0.0.0.0/0", "::/0"] };

  it.each<[string, EgressFacts, readonly Gateway[], readonly string[]]>([
    ["with a ready gateway", egress(), [READY], both],
    ["with a gateway that only drains, as with kube-proxy", egress(), [DRAINING], both],
    ["for one family of a dual-stack pod", egress(dual), [READY], both],
    ["for a pod of one of its families", egress(dual), [READY], ["10.244.0.5"]],
    [
      "for a namespace that it allows",
      egress(BOUNDED, undefined, { allowedNamespaces: ["apps"] }),
      [READY],
      both,
    ],
    ["without a gateway, when it says so", egress({ clientStartup: "Immediate" }, []), [], both],
  ])("%s", (_, object, gateways, addresses) => {
    expect(admission(object, gateways, addresses)()).toBe(object);
  });

  it.each<[string, StoredEgress | undefined, readonly Gateway[], readonly string[], RefusalReason, RegExp]>([
    ["does not exist", undefined, [], both, "egress-missing", /internet\/nat does not exist/],
    [
      "is not understood",
      notUnderstood(),
      [READY],
      both,
      "egress-not-understood",
      /internet\/nat is not understood by this release: spec\.destinations\[0\]: "192.0.2.0\/33" is not a CIDR/,
    ],
    [
      "does not allow the pod's namespace",
      egress(BOUNDED, undefined, { allowedNamespaces: ["payments"] }),
      [READY],
      both,
      "namespace-not-allowed",
      /pods of namespace apps may not use Egress internet\/nat/,
    ],
    ["has no gateway", egress(), [], both, "no-gateway", /no gateway that is ready/],
    ["has only dead gateways", egress(), [DEAD], both, "no-gateway", /no gateway that is ready/],
    ["has no Service yet", egress({}, []), [READY], both, "no-gateway", /no gateway that is ready/],
    [
      "has another family",
      egress(),
      [READY],
      ["fd00:244::5"],
      "no-common-family",
      /only IPv4 destinations, but the pod has only IPv6/,
    ],
  ])("but not when it %s", (_, object, gateways, addresses, code, message) => {
    const admit = admission(object, gateways, addresses);
    expect(admit).toThrow(message);
    expect(admit).toThrow(expect.objectContaining({ code, remedy: expect.any(String) }));
  });
});

describe("a pod that asks for an Egress", () => {
  it.each<[string, Partial<Parameters<typeof assertMayBeClient>[0]>, RefusalReason]>([
    ["is a gateway itself", { isGateway: true }, "is-gateway"],
    ["has no address", { addresses: [] }, "no-address"],
    [
      "has more addresses than a slice takes",
      { addresses: Array.from({ length: 17 }, (_, i) => `10.244.0.${i}`) },
      "too-many-addresses",
    ],
    [
      "has an IPv4 address in IPv6's spelling, which a slice does not take",
      { addresses: ["10.244.0.9", "::ffff:af4:9"] },
      "address-mapped",
    ],
    ["has a UID that a slice does not take", { uid: "web 1\n" }, "uid-unusual"],
  ])("cannot be a client when it %s, however often it is tried", (_, changes, code) => {
    const plain = { pod: POD, uid: "u-1", addresses: ["10.244.0.5"], isGateway: false };
    expect(() => assertMayBeClient(plain)).not.toThrow();
    const admit = () => assertMayBeClient({ ...plain, ...changes });
    expect(admit).toThrow(expect.objectContaining({ code, retryable: false, remedy: expect.any(String) }));
  });

  it("is a gateway only in the namespace of an Egress", () => {
    expect(() => assertMayBeGateway(POD, { hasEgressIn: () => true })).not.toThrow();
    expect(() => assertMayBeGateway(POD, { hasEgressIn: () => false })).toThrow(/there is no Egress in its/);
  });
});
