import { describe, expect, test } from "vitest";
import { cniBed } from "./bed.ts";
import {
  type Answer,
  type Call,
  type Command,
  conforms,
  PROTOCOL_CASES,
  previousResult,
} from "./cases/index.ts";
import { type Ended, POD_NETNS } from "./sandbox.ts";
import { commandIn } from "./surroundings.ts";

const VERSION = "1.1.0";
const ANNOTATIONS = "io.kubernetes.cri.pod-annotations";

const bed = cniBed();

const rows = PROTOCOL_CASES.flatMap((row) =>
  row.commands.flatMap((command) =>
    row.calls.map((call) => ({
      ...row,
      command,
      call,
      variant: row.calls.length > 1 ? variantOf(call) : "",
    })),
  ),
);

describe("egress-nat answers", () => {
  test.each(rows)("$command: $title $variant: $answer", async ({ command, call, answer }) => {
    expect(await execute("egress-nat", command, call)).toBe(answer);
  });
});

describe("tuning answers", () => {
  test.each(rows)("$command: $title $variant: $control", async ({ command, call, control }) => {
    expect(await execute("tuning", command, call)).toBe(control);
  });
});

test("what deviates from the specification, or from tuning, has a reason", () => {
  const unexplained = PROTOCOL_CASES.filter(
    ({ answer, expected, control, reason }) =>
      reason === undefined && (answer !== control || !conforms(answer, expected)),
  );
  expect(unexplained).toEqual([]);
});

function variantOf(call: Call): string {
  return `(${JSON.stringify(Object.values(call)[0]).slice(0, 40)})`;
}

/** @returns how it ended; what it wrote is what the specification has for such an end */
async function execute(type: string, command: Command, call: Call): Promise<string> {
  const configuration = configurationOf(type, call);
  const env = environmentOf(command, call);
  const input = call.stdin ?? JSON.stringify(configuration);
  const run = () =>
    bed().sandbox.run(commandIn(call.surroundings, bed().programs.pluginOf(type)), { input, env });
  let ended = await run();
  for (let times = 1; times < (call.times ?? 1); times++) ended = await run();
  if (ended.exitCode === 0) {
    expectSuccess(env.CNI_COMMAND, ended, String(configuration.cniVersion));
    return "succeeds";
  }
  if (ended.stdout === "") return `exit code ${ended.exitCode} without a word`;
  const answer = answerOf(ended);
  if (type === "egress-nat") expectMessage(ended, answer, configuration, call);
  return answer;
}

/** Section 5: a result on ADD and VERSION, and nothing on the others. */
function expectSuccess(command: string | undefined, { stdout }: Ended, cniVersion: string): void {
  if (command === "ADD") {
    const { cniVersion: version, ips } = JSON.parse(stdout);
    expect({ version, ips }).toEqual({ version: cniVersion, ips: previousResult(cniVersion).ips });
  } else if (command === "VERSION") {
    expect(JSON.parse(stdout)).toMatchObject({
      cniVersion: VERSION,
      supportedVersions: expect.arrayContaining(["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]),
    });
  } else {
    expect(stdout).toBe("");
  }
}

/** Section 5 "Error". */
function answerOf({ stdout }: Ended): Answer {
  const error = JSON.parse(stdout);
  expect(error).toMatchObject({ code: expect.any(Number), msg: expect.stringMatching(/./) });
  return `code ${error.code}`;
}

/** Section 5 "Error": the version is the configuration's, and a message names the variables that are wrong. */
function expectMessage(
  { stdout }: Ended,
  answer: Answer,
  { cniVersion = VERSION }: Record<string, unknown>,
  { environment = {} }: Call,
): void {
  const error = JSON.parse(stdout);
  expect(error.cniVersion).toBe(cniVersion);
  if (answer === "code 4") for (const name of Object.keys(environment)) expect(error.msg).toContain(name);
}

function configurationOf(type: string, { configuration = {} }: Call): Record<string, unknown> {
  const { cniVersion = VERSION } = configuration;
  return {
    cniVersion,
    name: "pods",
    type,
    runtimeConfig: { [ANNOTATIONS]: { "example.com/a": "b" } },
    prevResult: previousResult(String(cniVersion)),
    "cni.dev/valid-attachments": [],
    ...configuration,
  };
}

function environmentOf(command: Command, { environment = {} }: Call): Record<string, string> {
  const variables = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: "c0ffee",
    CNI_NETNS: POD_NETNS,
    CNI_IFNAME: "eth0",
    CNI_PATH: bed().programs.path,
    CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAMESPACE=apps;K8S_POD_NAME=web",
    ...environment,
  };
  const set = Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(set);
}
