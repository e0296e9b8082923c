/**
 * A sysctl, by its path below /proc/sys, that is there where the kernel knows IPv6, whatever its value: one booted with
 * `ipv6.disable=1` takes no rule and no route of IPv6, and shows none.
 */
export const OF_IPV6 = "net/ipv6/conf/all/disable_ipv6";
