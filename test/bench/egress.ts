import type { ClientEgress, ClientGateway } from "@egress-nat/founat";

/** UDP port of tunnels. */
export const FOU_PORT = 5555;

/** The Internet, by some gateways. */
export function egressBy(gateways: readonly ClientGateway[], peers: readonly string[]): ClientEgress {
  return {
    name: "bench/bench",
    destinations: ["0.0.0.0/0", "::/0"],
    excluded: [],
    gateways,
    peers,
    port: FOU_PORT,
    sourcePortAuto: false,
    originatingOnly: true,
  };
}
