/** What a row of the table of calls is. */

export const COMMANDS = ["ADD", "CHECK", "DEL", "GC", "STATUS", "VERSION"] as const;
export type Command = (typeof COMMANDS)[number];

/** Those that fail without a configuration. */
export const WITH_CONFIGURATION = ["ADD", "CHECK", "GC", "STATUS"] as const;

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

export const ALL_SUCCEED = { expected: "succeeds", answer: "succeeds", control: "succeeds" } as const;

export function allSay(code: `code ${number}`) {
  return { expected: code, answer: code, control: code } as const;
}

/** Where a DEL succeeds that `tuning` refuses. */
export function bestEffort(code: `code ${number}`, expected: Expected = "open") {
  const reason = "DEL is best effort: it ends what the parameters that are there name";
  return { commands: ["DEL"], expected, answer: "succeeds", control: code, reason } as const;
}

/** Where `tuning` has upstream's code of internal failures. */
export function saysWhatIsWrong(code: `code ${number}`, reason: string) {
  return { expected: "fails", answer: code, control: "code 999", reason } as const;
}
