/**
 * What the CNI specification 1.1 asks of a plugin, case by case, with what egress-nat and upstream's `tuning` answer for a
 * pod that is no client. protocol.test.ts holds each row against both programs, and docs/cni.md shows it.
 */

import type { ProtocolCase } from "./case.ts";
import { CONFIGURATION, PREVIOUS_RESULT } from "./configuration.ts";
import { ENVIRONMENT, EVERYDAY } from "./environment.ts";
import { PROCESS } from "./process.ts";

export {
  type Answer,
  type Call,
  type Command,
  conforms,
  type Expected,
  previousResult,
  type Surroundings,
} from "./case.ts";

/** In the order of the document. */
export const PROTOCOL_CASES: readonly ProtocolCase[] = [
  ...EVERYDAY,
  ...ENVIRONMENT,
  ...CONFIGURATION,
  ...PREVIOUS_RESULT,
  ...PROCESS,
];
