import { mkdir, rm, writeFile } from "node:fs/promises";
import { createLogger } from "@egress-nat/program";
import { cniBed } from "@egress-nat/test/cni/bed";
import { conforms } from "@egress-nat/test/cni/cases";
import { CLIENT, CLIENT_CASES, type ClientCase } from "@egress-nat/test/cni/client-cases";
import { POD_NETNS } from "@egress-nat/test/cni/sandbox";
import {
  parseAnswers,
  type RuntimeCommand,
  type Scenario,
  type StepAnswer,
} from "@egress-nat/test/cni/scenario";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { AgentRequest } from "./cni/protocol.ts";
import { NodeState } from "./records/node-state.ts";
import { clientRecord } from "./testing/client-record.ts";
import { FakeAgent } from "./testing/fake-agent.ts";

const RUN = "/run/egress-nat";
const STATE = "/var/lib/egress-nat";
const CAPABILITY = "io.kubernetes.cri.pod-annotations";
/** The pod's, by the plugin before egress-nat: upstream's `loopback`. */
const ADDRESS = "127.0.0.1";
const OTHER_ADDRESS = "127.0.0.2";
const YES = { ok: true } as const;

const bed = cniBed();

beforeEach(() => mkdir(bed().sandbox.path(RUN)));

afterEach(async () => {
  for (const folder of [RUN, STATE] as const)
    await rm(bed().sandbox.path(folder), { recursive: true, force: true });
});

test.each(CLIENT_CASES)("libcni's $command of a client: $title: $answer", async (row) => {
  // libcni checks what it has added itself.
  if (row.command === "CHECK") await throughLibcni("ADD", YES);
  const state = new NodeState(
    { runDirectory: bed().sandbox.path(RUN), stateDirectory: bed().sandbox.path(STATE) },
    createLogger({ name: "test", level: "silent" }),
  );
  await prepare(row, state);
  const { answer, requests } = await throughLibcni(row.command, replyOf(row), row.netnsGone);
  expect(outcome(answer)).toBe(row.answer);
  expect(requests.map(asked)).toEqual(row.asks);
  expect(conforms(row.answer, row.expected) || row.reason !== undefined).toBe(true);
  const left = row.clients.filter((containerId) => !row.ends?.includes(containerId));
  expect(state.recordIds().toSorted()).toEqual(left.map(recordOf).toSorted());
  if (row.stateUnreadable) return;
  // Only an agent frees them, when gateways have let go.
  expect(state.trustedAddresses().toSorted()).toEqual(row.clients.map(addressOf).toSorted());
});

const recordOf = (containerId: string) => `${containerId}:lo:pods`;

const addressOf = (containerId: string) => (containerId === CLIENT ? ADDRESS : OTHER_ADDRESS);

async function prepare({ clients, stateUnreadable }: ClientCase, state: NodeState): Promise<void> {
  for (const containerId of clients) {
    const address = addressOf(containerId);
    state.writeRecord(clientRecord({ containerId, ifname: "lo", netns: POD_NETNS, addresses: [address] }));
    state.writeTrusted({ address, record: recordOf(containerId), egresses: [] });
  }
  if (!stateUnreadable) return;
  await mkdir(bed().sandbox.path(STATE));
  await writeFile(bed().sandbox.path(`${STATE}/addresses`), "");
}

function replyOf({ agent }: ClientCase) {
  if (agent === "absent") return undefined;
  return agent === "yes" ? YES : ({ ok: false, code: agent, message: "as the test wants it" } as const);
}

/** Has libcni carry out one command of a chain that ends with egress-nat, with an agent that answers so. */
async function throughLibcni(
  command: RuntimeCommand,
  reply: Parameters<typeof FakeAgent.start>[1] | undefined,
  netnsGone = false,
): Promise<{ readonly answer: StepAnswer; readonly requests: readonly AgentRequest[] }> {
  const agent =
    reply === undefined ? undefined : await FakeAgent.start(bed().sandbox.path(`${RUN}/agent.sock`), reply);
  const scenario: Scenario = {
    ...{ through: "libcni", pluginFolders: bed().programs.pluginFolders, cacheFolder: "/run/cni-cache" },
    configuration: {
      ...{ cniVersion: "1.1.0", name: "pods" },
      plugins: [{ type: "loopback" }, { type: "egress-nat", capabilities: { [CAPABILITY]: true } }],
    },
    steps: [
      {
        ...{ command, containerId: CLIENT, ifname: "lo", netns: netnsGone ? "/run/netns/gone" : POD_NETNS },
        args: { IgnoreUnknown: "1", K8S_POD_NAMESPACE: "apps", K8S_POD_NAME: "web" },
        capabilityArgs: { [CAPABILITY]: { "egress.coil.cybozu.com/internet": "nat" } },
        validAttachments: [{ containerID: CLIENT, ifname: "lo" }],
      },
    ],
  };
  try {
    const { stdout } = await bed().sandbox.run([bed().programs.driver], { input: JSON.stringify(scenario) });
    const [answer] = parseAnswers(stdout);
    if (answer === undefined) throw new Error("the driver left out the step");
    return { answer, requests: agent?.requests ?? [] };
  } finally {
    await agent?.close();
  }
}

function outcome({ error }: StepAnswer): string {
  if (error === undefined) return "succeeds";
  return error.code === undefined ? error.message : `code ${error.code}`;
}

function asked(request: AgentRequest): string {
  const { operation } = request;
  if (operation === "delete") return `${operation} ${request.records.join()}`;
  return operation === "check" ? `${operation} ${request.record}` : operation;
}
