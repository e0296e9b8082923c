/** Calls with another network configuration on stdin. */

import {
  ALL_SUCCEED,
  allSay,
  bestEffort,
  type ProtocolCase,
  previousResult,
  saysWhatIsWrong,
  WITH_CONFIGURATION,
} from "./case.ts";

const OF_THE_CONFIGURATION = "the code of a wrong configuration";
const NO_OBJECTS = ["", "cniVersion: 1.1.0", `{"cniVersion":"1.1.0"`, "[]"].map((stdin) => ({ stdin }));
const NO_NAMES = [undefined, "", "a/b"].map((name) => ({ configuration: { name } }));

export const CONFIGURATION: readonly ProtocolCase[] = [
  {
    title: "stdin is empty, no JSON, half of it, or a list",
    ...{ commands: WITH_CONFIGURATION, section: "5 Error", ...allSay("code 6") },
    calls: NO_OBJECTS,
  },
  {
    title: "stdin is empty, no JSON, half of it, or a list",
    ...{ section: "2 DEL", ...bestEffort("code 6") },
    calls: NO_OBJECTS,
  },
  {
    title: "stdin is empty",
    ...{ commands: ["VERSION"], section: "2 VERSION", ...ALL_SUCCEED, expected: "open" },
    calls: [{ stdin: "" }],
  },
  {
    title: "name is absent, empty or a path",
    ...{ commands: WITH_CONFIGURATION, section: "1 Configuration format", ...allSay("code 7") },
    calls: NO_NAMES,
  },
  {
    title: "name is absent, empty or a path",
    ...{ section: "2 DEL", ...bestEffort("code 7") },
    calls: NO_NAMES,
  },
  {
    title: "no cniVersion",
    ...{ commands: ["ADD"], section: "3 Deriving request configuration" },
    ...saysWhatIsWrong("code 7", OF_THE_CONFIGURATION),
    calls: [{ configuration: { cniVersion: undefined } }],
  },
  {
    title: "cniVersion is 2.0.0",
    ...{ commands: WITH_CONFIGURATION, section: "5 Error", ...allSay("code 1") },
    calls: [{ configuration: { cniVersion: "2.0.0" } }],
  },
  {
    title: "cniVersion is 2.0.0",
    ...{ section: "5 Error", ...bestEffort("code 1", "code 1") },
    calls: [{ configuration: { cniVersion: "2.0.0" } }],
  },
  {
    title: "cniVersion is 0.3.1",
    ...{ commands: ["CHECK", "GC", "STATUS"], section: "5 Error", ...allSay("code 1") },
    calls: [{ configuration: { cniVersion: "0.3.1" } }],
  },
  {
    title: "cniVersion is 1.0.0",
    ...{ commands: ["GC", "STATUS"], section: "5 Error", ...allSay("code 1") },
    calls: [{ configuration: { cniVersion: "1.0.0" } }],
  },
  {
    title: "`cni.dev/valid-attachments` is null, as Go writes an empty list",
    ...{ commands: ["GC"], section: "2 GC", ...ALL_SUCCEED },
    calls: [{ configuration: { "cni.dev/valid-attachments": null } }],
  },
  {
    title: "no `cni.dev/valid-attachments`, as `cnitool gc` has it",
    ...{ commands: ["GC"], section: "2 GC", expected: "fails", answer: "code 7", control: "succeeds" },
    reason: "nothing is removed on a guess; `tuning` has nothing to remove",
    calls: [{ configuration: { "cni.dev/valid-attachments": undefined } }],
  },
];

export const PREVIOUS_RESULT: readonly ProtocolCase[] = [
  {
    title: "no prevResult",
    ...{ commands: ["ADD", "CHECK"], section: "3 Deriving request configuration" },
    ...saysWhatIsWrong("code 7", OF_THE_CONFIGURATION),
    calls: [{ configuration: { prevResult: undefined } }],
  },
  {
    title: "no prevResult",
    ...{ commands: ["DEL"], section: "2 DEL", ...ALL_SUCCEED },
    calls: [{ configuration: { prevResult: undefined } }],
  },
  {
    title: "prevResult is of 1.0.0, the configuration of 1.1.0",
    ...{ commands: ["ADD"], section: "3 Adding an attachment", ...ALL_SUCCEED, expected: "open" },
    calls: [{ configuration: { prevResult: previousResult("1.0.0") } }],
  },
  {
    title: "prevResult is of another version, in which addresses are written otherwise",
    ...{ commands: ["ADD"], section: "3 Adding an attachment" },
    ...{ expected: "open", answer: "succeeds", control: "code 999" },
    reason: "it is converted, as libcni does from plugin to plugin",
    calls: [
      { configuration: { cniVersion: "1.1.0", prevResult: previousResult("0.4.0") } },
      { configuration: { cniVersion: "0.4.0", prevResult: previousResult("1.1.0") } },
      { configuration: { cniVersion: "0.3.0", prevResult: previousResult("1.0.0") } },
    ],
  },
  {
    title: "prevResult is of 2.0.0",
    ...{ commands: ["ADD", "CHECK"], section: "5 Error" },
    ...saysWhatIsWrong("code 1", "the code of a wrong version"),
    calls: [{ configuration: { prevResult: previousResult("2.0.0") } }],
  },
  {
    title: "prevResult has a malformed address",
    ...{ commands: ["ADD", "CHECK"], section: "5 Error" },
    ...saysWhatIsWrong("code 7", OF_THE_CONFIGURATION),
    calls: [
      {
        configuration: {
          prevResult: { ...previousResult("1.1.0"), ips: [{ address: "10.244.0.256/24" }] },
        },
      },
    ],
  },
];
