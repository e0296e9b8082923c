import { CLIENT_ANNOTATION_PREFIX } from "@egress-nat/crds/names";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isLookalike } from "./lookalike.ts";

describe("an annotation that was meant for this product", () => {
  it("is seen with any three slips in its domain, and what they leave is compared", () => {
    const slip = fc.record({
      at: fc.nat(21),
      kind: fc.constantFrom("missing", "more", "other"),
      letter: fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz-."),
    });
    fc.assert(
      fc.property(fc.array(slip, { maxLength: 3 }), (slips) => {
        const letters = [..."egress.coil.cybozu.com"];
        for (const { at, kind, letter } of slips) {
          if (kind === "missing") letters.splice(at, 1);
          else letters.splice(at, kind === "more" ? 0 : 1, letter);
        }
        const key = `${letters.join("")}/internet`;
        expect(isLookalike(key)).toBe(!key.startsWith(CLIENT_ANNOTATION_PREFIX));
      }),
    );
  });

  it.each([
    "egres.coil.cybozu.com/internet",
    "egress.coil.cybosu.com/internet",
    "eggress.coil.cybozu.com/internet",
    "egress.coli.cybozu.com/internet",
    "egres.coil.cyboz.co/internet",
    "egress.coil.cybozu.io/internet",
    "egress.coil.cybozu.org.example/internet",
    "egress.cybozu.com/internet",
    "coil.cybozu.com/internet",
    "coil.cybozu.com/egress",
    "egress-nat.coil.cybozu.com/internet",
    "nat.coil.cybozu.com/internet",
    "Egress.coil.cybozu.com/internet",
    "egress.coil.cybozu.com",
    "egress.coil.cybozu.com.internet",
    "egress.coil.cybozu.com-internet",
  ])("is seen by its key: %s", (key) => {
    expect(isLookalike(key)).toBe(true);
  });
});

describe("an annotation that is plainly somebody else's, or right,", () => {
  it.each([
    "egress.coil.cybozu.com/internet",
    "egress.coil.cybozu.com/Internet", // the agent says what is wrong with it
    "coil.cybozu.com/egress-gateway",
    "coil.cybozu.com/pool",
    "kubernetes.io/config.source",
    "kubectl.kubernetes.io/restartedAt",
    "prometheus.io/scrape",
    "cni.projectcalico.org/containerID",
    "egress.projectcalico.org/selector",
    "k8s.v1.cni.cncf.io/networks",
    "sidecar.istio.io/inject",
    "egress.mail.company.com/relay",
    "recoil.example.com/egress",
    "cybozu.com/team",
    "egress",
    "",
  ])("is not: %s", (key) => {
    expect(isLookalike(key)).toBe(false);
  });
});
