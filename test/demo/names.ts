/** Name of the cluster that `oldest-kubernetes.systems.test.ts` brings up. */
export const OLDEST = "oldest";
