import { join } from "node:path";

/** The chart of this checkout. */
export const CHART = join(import.meta.dirname, "../../config/helm/egress-nat");
