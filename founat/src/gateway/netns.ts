import type { Kernel } from "../kernel.ts";

/** Sets the sysctls that a gateway needs in the network namespace of `kernel`. */
export async function prepareGatewayNetns(_kernel: Kernel): Promise<void> {}
