/** Calls of a process that is started otherwise. */

import {
  ALL_SUCCEED,
  allSay,
  COMMANDS,
  type ProtocolCase,
  previousResult,
  WITH_CONFIGURATION,
} from "./case.ts";

/** More than a pipe holds. */
const LONG_RESULT = { ...previousResult("1.1.0"), dns: { search: Array(20_000).fill("example.com") } };

export const PROCESS: readonly ProtocolCase[] = [
  {
    title: "pipes do not block, and hold less than a result",
    ...{ commands: ["ADD"], section: "2 Overview", ...ALL_SUCCEED },
    calls: [{ surroundings: "pipes do not block", configuration: { prevResult: LONG_RESULT } }],
  },
  {
    title: "the working directory is deleted",
    ...{ commands: COMMANDS, section: "2 Overview", ...ALL_SUCCEED },
    calls: [{ surroundings: "the working directory is deleted" }],
  },
  {
    title: "stdin is a folder",
    ...{ commands: ["ADD", "CHECK", "DEL", "GC", "STATUS"], section: "5 Error", ...allSay("code 5") },
    calls: [{ surroundings: "stdin is a folder" }],
  },
  {
    title: "stdin is closed",
    ...{ commands: WITH_CONFIGURATION, section: "5 Error", expected: "fails" },
    ...{ answer: "code 5", control: "code 6", reason: "it cannot be read, and `tuning` finds no JSON" },
    calls: [{ surroundings: "stdin is closed" }],
  },
];
