import { join } from "node:path";
import type { StateLocations } from "../records/state-folder.ts";

/** The locations of a node's state, all in one folder. */
export function locationsIn(folder: string): StateLocations {
  return { runDirectory: join(folder, "run"), stateDirectory: join(folder, "lib") };
}
