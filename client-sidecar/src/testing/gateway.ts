import type { HeardGateway } from "../gateways/selection.ts";

/** A gateway that is ready. */
export function gateway(changes: Partial<HeardGateway> = {}): HeardGateway {
  return {
    ...{ name: "nat-1", addresses: ["10.244.1.7"], pulse: "alive" },
    ...{ ready: true, serving: true, terminating: false },
    ...changes,
  };
}
