import { formatCidr } from "@egress-nat/addresses";
import { parseCidr } from "../routing/cidr.ts";
import { type LinkState, MAIN_TABLE, type NetworkState, type RouteState } from "./state.ts";

/** linux/rtnetlink.h */
const PROTOCOL = { redirect: 1, kernel: 2, advertisement: 9 };

type Address = LinkState["addresses"][number];

/** Whether an address is of a router advertisement: those have a lifetime. An IPv4 address may have that of its lease. */
export function isAdvertised({ family, lasting }: Address): boolean {
  return family === "ipv6" && !lasting;
}

/**
 * The addresses of a link that whoever attached it has given to it.
 *
 * @returns all of them where no other ones are there: then the network gives none but by advertisements
 */
export function givenAddresses({ addresses }: LinkState): readonly Address[] {
  const given = addresses.filter((address) => !isAdvertised(address));
  return given.length > 0 ? given : addresses;
}

/**
 * Whether a route comes from a router advertisement or a redirect, which anybody on the link can send (RFC 6104). The
 * kernel signs routes to advertised prefixes as it does those of addresses.
 */
export function isLearned(
  { family, protocol, device, destination }: RouteState,
  { links }: Pick<NetworkState, "links">,
): boolean {
  if (protocol === PROTOCOL.redirect || protocol === PROTOCOL.advertisement) return true;
  if (family === "ipv4" || protocol !== PROTOCOL.kernel || destination === LINK_LOCAL) return false;
  const link = links.find(({ name }) => name === device);
  return !link?.addresses.some(
    ({ lasting, address, prefixLength }) =>
      lasting && formatCidr(parseCidr(`${address}/${prefixLength}`)) === destination,
  );
}

const LINK_LOCAL = "fe80::/64";

/**
 * Lines for `ip -6 -batch` by which links that do not listen to routers any more keep what they were given, for good, and
 * nothing else that routers have told. Of the default routes one stays where there is no other: the first router's.
 */
export function settledLines(links: readonly LinkState[], state: NetworkState): string[] {
  const settled = links.map((link) => ({
    ...link,
    addresses: givenAddresses(link).map((address) => ({ ...address, lasting: true })),
  }));
  const main = state.routes.filter(({ family, table }) => family === "ipv6" && table === MAIN_TABLE);
  const learned = main.filter(
    (route) => settled.some(({ name }) => name === route.device) && isLearned(route, { links: settled }),
  );
  const isWayOut = ({ type, destination }: RouteState) => type === "unicast" && destination === "::/0";
  const hasOther = main.some((route) => isWayOut(route) && !learned.includes(route));
  const first = hasOther ? undefined : learned.find((route) => isWayOut(route) && route.via !== undefined);
  return [
    ...(first === undefined ? [] : [`route replace ${words(first)}${sizeOf(first)} proto static`]),
    ...learned
      .filter((route) => route !== first)
      .map((route) => `route del ${words(route)} proto ${route.protocol}`),
    ...links.flatMap(addressLines),
  ];
}

function addressLines(link: LinkState): string[] {
  const given = givenAddresses(link);
  return link.addresses.filter(isAdvertised).map((address) => {
    const words = `${address.address}/${address.prefixLength} dev ${link.name}`;
    return given.includes(address)
      ? `address change ${words} valid_lft forever preferred_lft forever`
      : `address del ${words}`;
  });
}

function sizeOf({ mtu }: RouteState): string {
  return mtu === undefined ? "" : ` mtu ${mtu}`;
}

function words({ destination, via, device, metric }: RouteState): string {
  return `${destination}${via === undefined ? "" : ` via ${via}`} dev ${device} metric ${metric}`;
}
