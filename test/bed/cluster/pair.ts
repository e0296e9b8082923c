/** Names of the clusters that `side-by-side.systems.test.ts` brings up. */
export const PAIR = ["pair-a", "pair-b"] as const;
