/** Names of what every e2e test finds in place. */

/** The cluster that the tests make for themselves. */
export const CLUSTER = "e2e";

/** The Egress for the whole internet, with two gateways. */
export const INTERNET_EGRESS = { namespace: "internet-egress", name: "nat" } as const;

/** The Egress for private ranges, with one gateway. */
export const OFFICE_EGRESS = { namespace: "office-egress", name: "nat" } as const;

/** Where the test pods live. */
export const NAMESPACE = "e2e";

/** All namespaces that the tests make. */
export const NAMESPACES = [NAMESPACE, INTERNET_EGRESS.namespace, OFFICE_EGRESS.namespace] as const;
