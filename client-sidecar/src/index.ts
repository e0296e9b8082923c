/** The client side of egress-nat: CNI plugin, node agent and installer. Public is only what the build needs. */

export { type CompileOptions, compilePlugin } from "./cni/build.ts";
