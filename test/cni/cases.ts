/**
 * What the CNI specification 1.1 asks of a plugin, case by case, with what egress-nat and upstream's `tuning` answer for a
 * pod that is no client. protocol.test.ts holds each row against both programs, and docs/cni.md shows it.
 */

export const COMMANDS = ["ADD", "CHECK", "DEL", "GC", "STATUS", "VERSION"] as const;
export type Command = (typeof COMMANDS)[number];

/** How an execution ends: exit code 0, or an error result of that code. */
export type Answer = "succeeds" | `code ${number}`;

/** What the specification says: "fails" is any code, "open" that it says nothing. */
export type Expected = Answer | "fails" | "open";

export interface ProtocolCase {
  readonly title: string;
  readonly commands: readonly Command[];
  /** Of the specification. */
  readonly section: string;
  readonly expected: Expected;
  readonly answer: Answer;
  /** What `tuning` answers. */
  readonly control: Answer;
  /** Where the answer is not the expected one, or not `tuning`'s: why. */
  readonly reason?: string;
  /** All of them are answered alike. */
  readonly calls: readonly Call[];
}

/** What differs from an execution that has nothing unusual. */
export interface Call {
  /** `CNI_*`; undefined: not set. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Fields of the network configuration; undefined: absent. */
  readonly configuration?: Readonly<Record<string, unknown>>;
  /** In place of the configuration. */
  readonly stdin?: string;
  readonly surroundings?: Surroundings;
  /** How often it is executed; the answer is the last one's. */
  readonly times?: number;
}

/** How the process is started. */
export type Surroundings =
  | "stdin is closed"
  | "stdin is a folder"
  | "pipes do not block"
  | "the working directory is deleted";

/** Whether an answer is one that the specification allows. */
export function conforms(answer: Answer, expected: Expected): boolean {
  return answer === expected || expected === "open" || (expected === "fails" && answer !== "succeeds");
}

/** A result of the plugins before, of a version of the specification. */
export function previousResult(cniVersion: string): Readonly<Record<string, unknown>> {
  const family = cniVersion.startsWith("0.") ? { version: "4" } : {};
  return {
    cniVersion,
    interfaces: [{ name: "eth0", sandbox: "/run/netns/pod" }],
    ips: [{ ...family, address: "10.244.0.5/24", gateway: "10.244.0.1", interface: 0 }],
    routes: [{ dst: "0.0.0.0/0" }],
    dns: {},
  };
}

const ALL_SUCCEED = { expected: "succeeds", answer: "succeeds", control: "succeeds" } as const;

function allSay(code: `code ${number}`) {
  return { expected: code, answer: code, control: code } as const;
}

/** Where a DEL succeeds that `tuning` refuses. */
function bestEffort(code: `code ${number}`, expected: Expected = "open") {
  const reason = "DEL is best effort: it ends what the parameters that are there name";
  return { commands: ["DEL"], expected, answer: "succeeds", control: code, reason } as const;
}

/** Where `tuning` has upstream's code of internal failures. */
function saysWhatIsWrong(code: `code ${number}`, reason: string) {
  return { expected: "fails", answer: code, control: "code 999", reason } as const;
}

const OF_THE_CONFIGURATION = "the code of a wrong configuration";
const OF_THE_LIBRARY = "the specification calls it optional; upstream's library demands it";

const EVERYDAY: readonly ProtocolCase[] = [
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

const ENVIRONMENT: readonly ProtocolCase[] = [
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
    ...{ commands: ["ADD", "CHECK"], section: "2 ADD, CHECK", ...allSay("code 4") },
    calls: [{ environment: { CNI_IFNAME: undefined } }],
  },
  {
    title: "no CNI_IFNAME",
    ...{ section: "2 DEL", ...bestEffort("code 4", "code 4") },
    calls: [{ environment: { CNI_IFNAME: undefined } }],
  },
  {
    title: "CNI_IFNAME is malformed or too long",
    ...{ commands: ["ADD", "CHECK"], section: "2 Parameters", ...allSay("code 4") },
    calls: MALFORMED_IFNAMES,
  },
  {
    title: "CNI_IFNAME is malformed or too long",
    ...{ section: "2 DEL", ...bestEffort("code 4") },
    calls: MALFORMED_IFNAMES,
  },
  {
    title: "no CNI_PATH",
    ...{ commands: ["ADD", "CHECK", "DEL"], section: "2 ADD, CHECK, DEL" },
    ...{ expected: "succeeds", answer: "succeeds", control: "code 4", reason: OF_THE_LIBRARY },
    calls: [{ environment: { CNI_PATH: undefined } }],
  },
  {
    title: "no CNI_PATH",
    ...{ commands: ["GC"], section: "2 GC", ...allSay("code 4") },
    calls: [{ environment: { CNI_PATH: undefined } }],
  },
  {
    title: "no CNI_PATH",
    ...{ commands: ["STATUS"], section: "2 STATUS" },
    ...{ expected: "succeeds", answer: "code 4", control: "code 4", reason: OF_THE_LIBRARY },
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

const WITH_CONFIGURATION = ["ADD", "CHECK", "GC", "STATUS"] as const;
const NO_OBJECTS = ["", "cniVersion: 1.1.0", `{"cniVersion":"1.1.0"`, "[]"].map((stdin) => ({ stdin }));
const NO_NAMES = [undefined, "", "a/b"].map((name) => ({ configuration: { name } }));

const CONFIGURATION: readonly ProtocolCase[] = [
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

const PREVIOUS_RESULT: readonly ProtocolCase[] = [
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

/** More than a pipe holds. */
const LONG_RESULT = { ...previousResult("1.1.0"), dns: { search: Array(20_000).fill("example.com") } };

const PROCESS: readonly ProtocolCase[] = [
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
    ...{ commands: WITH_CONFIGURATION, section: "5 Error", ...allSay("code 6"), expected: "fails" },
    calls: [{ surroundings: "stdin is closed" }],
  },
];

/** In the order of the document. */
export const PROTOCOL_CASES: readonly ProtocolCase[] = [
  ...EVERYDAY,
  ...ENVIRONMENT,
  ...CONFIGURATION,
  ...PREVIOUS_RESULT,
  ...PROCESS,
];
