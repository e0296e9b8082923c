/** The plugin's entry with a folder of its own for the node's state, so that tests need no root. */

import { execute } from "../cni/execution.ts";
import { host } from "../cni/host.ts";

const folder = host.environment.FOLDER ?? "";
execute({ runDirectory: `${folder}/run`, stateDirectory: `${folder}/lib` });
