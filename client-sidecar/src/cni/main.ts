/** Entry of the plugin. */

import { execute } from "./execution.ts";

execute();
