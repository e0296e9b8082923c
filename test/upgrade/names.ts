/** Name of the cluster that `upgrade.systems.test.ts` brings up. */
export const UPGRADED = "upgraded";
