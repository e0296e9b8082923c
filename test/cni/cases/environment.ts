/** Calls that are as they should be, and calls with other `CNI_*` variables. */

import { ALL_SUCCEED, allSay, COMMANDS, type ProtocolCase, saysWhatIsWrong } from "./case.ts";

export const EVERYDAY: readonly ProtocolCase[] = [
  {
    title: "all is as it should be",
    ...{ commands: COMMANDS, section: "2 CNI operations", ...ALL_SUCCEED },
    calls: [{}],
  },
  {
    title: "the same once more",
    ...{ commands: ["ADD", "CHECK", "DEL", "GC"], section: "2 ADD, DEL", ...ALL_SUCCEED },
    calls: [{ times: 2 }],
  },
  {
    title: "a container id of 1, 200 or 500 characters",
    ...{ commands: ["ADD", "CHECK", "DEL"], section: "2 Parameters", ...ALL_SUCCEED },
    calls: [1, 200, 500].map((length) => ({ environment: { CNI_CONTAINERID: "c".repeat(length) } })),
  },
];

const MALFORMED_IFNAMES = ["a/b", "a:b", "a b", "..", "eth0123456789012"].map((CNI_IFNAME) => ({
  environment: { CNI_IFNAME },
}));

export const ENVIRONMENT: readonly ProtocolCase[] = [
  {
    title: "no CNI_COMMAND",
    ...{ commands: ["ADD"], section: "5 Error", expected: "code 4", answer: "code 4", control: "succeeds" },
    reason: "`tuning` then tells people what it is",
    calls: [{ environment: { CNI_COMMAND: undefined } }],
  },
  {
    title: "CNI_COMMAND is none that there is",
    ...{ commands: ["ADD"], section: "5 Error", ...allSay("code 4") },
    calls: [{ environment: { CNI_COMMAND: "UPDATE" } }],
  },
  {
    title: "no CNI_CONTAINERID",
    ...{ commands: ["ADD", "CHECK", "DEL"], section: "2 Parameters", ...allSay("code 4") },
    calls: [{ environment: { CNI_CONTAINERID: undefined } }],
  },
  {
    title: "CNI_CONTAINERID is malformed",
    ...{ commands: ["ADD", "CHECK", "DEL"], section: "2 Parameters", ...allSay("code 4") },
    calls: ["../x", "a/b", "-x", "a b"].map((CNI_CONTAINERID) => ({ environment: { CNI_CONTAINERID } })),
  },
  {
    title: "no CNI_NETNS",
    ...{ commands: ["ADD", "CHECK"], section: "2 ADD, CHECK", ...allSay("code 4") },
    calls: [{ environment: { CNI_NETNS: undefined } }],
  },
  {
    title: "no CNI_NETNS",
    ...{ commands: ["DEL"], section: "2 DEL", ...ALL_SUCCEED },
    calls: [{ environment: { CNI_NETNS: undefined } }],
  },
  {
    title: "CNI_NETNS is relative",
    ...{ commands: ["ADD", "CHECK"], section: "2 Parameters" },
    ...saysWhatIsWrong("code 4", "the code of a wrong variable"),
    calls: [{ environment: { CNI_NETNS: "netns/pod" } }],
  },
  {
    title: "CNI_NETNS leads nowhere",
    ...{ commands: ["ADD"], section: "2 ADD", expected: "open", answer: "succeeds", control: "code 999" },
    reason: "the network namespace of a pod that is no client is not looked at",
    calls: [{ environment: { CNI_NETNS: "/run/netns/gone" } }],
  },
  {
    title: "CNI_NETNS leads nowhere",
    ...{ commands: ["CHECK"], section: "5 Error", expected: "code 3", answer: "code 3", control: "code 999" },
    reason: "the code of a container that is not there",
    calls: [{ environment: { CNI_NETNS: "/run/netns/gone" } }],
  },
  {
    title: "CNI_NETNS leads nowhere",
    ...{ commands: ["DEL"], section: "2 DEL", ...ALL_SUCCEED },
    calls: [{ environment: { CNI_NETNS: "/run/netns/gone" } }],
  },
  {
    title: "no CNI_IFNAME",
    ...{ commands: ["ADD", "CHECK", "DEL"], section: "2 ADD, CHECK, DEL", ...allSay("code 4") },
    calls: [{ environment: { CNI_IFNAME: undefined } }],
  },
  {
    title: "CNI_IFNAME is malformed or too long",
    ...{ commands: ["ADD", "CHECK", "DEL"], section: "2 Parameters", ...allSay("code 4") },
    calls: MALFORMED_IFNAMES,
  },
  {
    title: "no CNI_PATH",
    ...{ commands: ["ADD", "CHECK", "DEL", "STATUS"], section: "2 ADD, CHECK, DEL, STATUS" },
    ...{ expected: "succeeds", answer: "succeeds", control: "code 4" },
    reason: "the specification calls it optional; upstream's library demands it",
    calls: [{ environment: { CNI_PATH: undefined } }],
  },
  {
    title: "no CNI_PATH",
    ...{ commands: ["GC"], section: "2 GC", ...allSay("code 4") },
    calls: [{ environment: { CNI_PATH: undefined } }],
  },
  {
    title: "no CNI_ARGS",
    ...{ commands: ["ADD", "CHECK", "DEL"], section: "2 Parameters", ...ALL_SUCCEED },
    calls: [{ environment: { CNI_ARGS: undefined } }],
  },
  {
    title: "CNI_ARGS is malformed",
    ...{ commands: ["ADD"], section: "2 Parameters", expected: "open", answer: "succeeds" },
    ...{ control: "code 999", reason: "it is not read for a pod that is no client" },
    calls: [{ environment: { CNI_ARGS: ";;=;x" } }],
  },
  {
    title: "nothing but CNI_COMMAND and CNI_PATH",
    ...{ commands: ["GC", "STATUS", "VERSION"], section: "2 GC, STATUS, VERSION", ...ALL_SUCCEED },
    calls: [
      {
        environment: Object.fromEntries(
          ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS"].map((name) => [name, undefined]),
        ),
      },
    ],
  },
];
