/** What libcni does with a chain of each version of the specification. versions.test.ts holds it against both programs. */

import type { Answer } from "./cases/index.ts";
import type { RuntimeCommand } from "./scenario.ts";

export interface VersionCase {
  readonly version: string;
  readonly answers: Readonly<Record<RuntimeCommand, Answer | typeof NOT_ASKED>>;
  /** What `tuning` answers. */
  readonly control: VersionCase["answers"];
}

/** libcni does not execute the plugin. */
export const NOT_ASKED = "not asked";

const NOTHING_NEW = { CHECK: NOT_ASKED, DEL: "succeeds", GC: NOT_ASKED, STATUS: NOT_ASKED } as const;
const UNTIL_031 = { ADD: "succeeds", ...NOTHING_NEW } as const;
const SINCE_040 = { ...UNTIL_031, CHECK: "succeeds" } as const;
const SINCE_110 = { ...SINCE_040, GC: "succeeds", STATUS: "succeeds" } as const;

export const VERSION_CASES: readonly VersionCase[] = [
  { version: "0.1.0", answers: { ADD: "code 1", ...NOTHING_NEW }, control: UNTIL_031 },
  { version: "0.2.0", answers: { ADD: "code 1", ...NOTHING_NEW }, control: UNTIL_031 },
  { version: "0.3.0", answers: UNTIL_031, control: UNTIL_031 },
  { version: "0.3.1", answers: UNTIL_031, control: UNTIL_031 },
  { version: "0.4.0", answers: SINCE_040, control: SINCE_040 },
  { version: "1.0.0", answers: SINCE_040, control: SINCE_040 },
  { version: "1.1.0", answers: SINCE_110, control: SINCE_110 },
];
