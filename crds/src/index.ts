/** The API of egress-nat: its resources, and the names that its programs share. */

export { Address, Cidr, isApiAddress } from "./address.ts";
export * from "./allowed-namespaces.ts";
export * from "./cluster-ranges.ts";
export * from "./egress.ts";
export * from "./egress-client-slice.ts";
export * from "./egress-status.ts";
export * from "./gateway-environment.ts";
export * from "./label-selector.ts";
export * from "./labelled-egress.ts";
export * from "./names.ts";
export * from "./object-meta.ts";
export * from "./pod-template.ts";
export * from "./resource.ts";
export * from "./served-fields.ts";
export * from "./stored-egress.ts";
