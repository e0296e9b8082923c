import { isDefault, type LinkState, type RouteState } from "./state.ts";

/**
 * How many bytes fit into a packet that leaves by an interface. A network that has tunnels of its own may give the interface more
 * than these carry, and say in the default route what they do (Cilium: pkg/mtu/mtu.go).
 */
export function mtuBy({ name, mtu }: LinkState, routes: readonly RouteState[]): number {
  const ofRoutes = routes
    .filter((route) => isDefault(route) && route.device === name)
    .flatMap((route) => route.mtu ?? []);
  return Math.min(mtu, ...ofRoutes);
}
