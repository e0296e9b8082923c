/** Entry of the compiled plugin. */

import { execute } from "./execution.ts";

await execute();
