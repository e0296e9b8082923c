/** Who applies children and status, in their managed fields. */
export const FIELD_MANAGER = "egress-nat-operator";
