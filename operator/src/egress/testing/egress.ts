import { Egress } from "@egress-nat/crds";

/** An Egress as the API server returns it, with the defaults of the CRD. */
export function anEgress(spec: object, rest: { metadata?: object; status?: object } = {}): Egress {
  return Egress.parse({
    apiVersion: "coil.cybozu.com/v2",
    kind: "Egress",
    metadata: {
      name: "nat",
      namespace: "internet",
      uid: "11111111-2222-3333-4444-555555555555",
      generation: 7,
      ...rest.metadata,
    },
    spec: { destinations: ["0.0.0.0/0", "::/0"], ...spec },
    ...(rest.status && { status: rest.status }),
  });
}
