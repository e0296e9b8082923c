/** Name of the Lease by which one operator leads, in the namespace of the product. */
export const LEASE = "egress-nat-operator";
