/** The plugin's entry with a folder of its own for the node's state, so that tests need no root. */

import { execute } from "../cni/execution.ts";
import { locationsIn } from "./locations.ts";

await execute(locationsIn(process.env.FOLDER ?? ""));
