import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { AGENT_SOCKET, HEALTH_PORTS, HEARTBEAT_PORT } from "@egress-nat/crds";
import { bundleProgram } from "@egress-nat/tools/build/bundle";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { machine } from "../bed/datapath/machine.ts";
import { settingsFrom } from "../e2e/kit/settings.ts";

const ROOT = join(import.meta.dirname, "../..");
const { egressPod, nodeAgent } = HEALTH_PORTS;

/** The programs, in a network namespace of their own. Nobody answers where they look for the API server. */
const PROGRAMS_ADDRESS = "10.9.0.2";
const KUBELET = "10.9.0.1";
const ATTACKER = "10.9.0.66";

/** More than the programs could have open files. */
const CONNECTIONS = 600;
const OPEN_FILES = 512;

const { long } = settingsFrom(process.env);
const HOLD_SECONDS = long ? 60 : 10;

interface Program {
  /** When it has ended, what it said last. */
  ended: string | undefined;
}

const programs = new Map<string, Program>();
const stop = new AbortController();
let script: string;

beforeAll(async () => {
  script = await readFile(join(import.meta.dirname, "hostile.py"), "utf8");
  const folder = (name: string) => join(machine.share, "hostile", name);
  await bundleProgram(join(ROOT, "egress-pod/src/main.ts"), folder("egress-pod"));
  await bundleProgram(join(ROOT, "client-sidecar/src/main.ts"), folder("agent"));
  await machine.run(`
    ip netns add programs
    ip netns add network
    ip link add eth0 netns programs type veth peer name eth0 netns network
    ip -n programs link set lo up
    ip -n programs link set eth0 up
    ip -n programs address add ${PROGRAMS_ADDRESS}/24 dev eth0
    ip -n network link set eth0 up
    ip -n network address add ${KUBELET}/24 dev eth0
    ip -n network address add ${ATTACKER}/24 dev eth0
    mkdir -p /run/hostile/bin /run/hostile/conf /run/hostile/lib`);
  start("egress-pod", `exec node ${folder("egress-pod")}/main.js`);
  // The agent's folder for what outlives a reboot is the machine's, but for this mount.
  start("agent", `mount --bind /run/hostile/lib /var/lib; exec node ${folder("agent")}/main.js serve`);
  await vi.waitFor(expectAlive, { timeout: 120_000, interval: 500 });
});

afterAll(async () => {
  stop.abort();
  await vi.waitFor(() => expect([...programs.values()].every(({ ended }) => ended !== undefined)).toBe(true));
  await machine.run("ip netns del programs; ip netns del network; rm -rf /run/hostile /run/egress-nat");
});

const ENVIRONMENT = {
  ...{ KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: "1" },
  ...{ EGRESS_NAMESPACE: "a", EGRESS_NAME: "a", CLUSTER_RANGES_NAMESPACE: "a", POD_IPS: PROGRAMS_ADDRESS },
  ...{ NODE_NAME: "a", POD_NAME: "a", POD_NAMESPACE: "a", DRAIN_TIMEOUT_SECONDS: "1" },
  ...{ CNI_BIN_DIR: "/run/hostile/bin", CNI_CONF_DIR: "/run/hostile/conf" },
};

function start(name: string, command: string): void {
  const program: Program = { ended: undefined };
  programs.set(name, program);
  const script = `ulimit -n ${OPEN_FILES}; ${command}`;
  void machine
    .exec(["unshare", "--mount", "ip", "netns", "exec", "programs", "sh", "-c", script], {
      timeoutMs: Number.POSITIVE_INFINITY,
      signal: stop.signal,
      env: ENVIRONMENT,
    })
    .then(({ exitCode, stderr }) => `exit code ${exitCode}: ${stderr.slice(-2000)}`, String)
    .then((end) => {
      program.ended = end;
    });
}

/** Has hostile.py do something, from outside of the programs' namespace but where it says so. */
const hostile = (args: string, { netns = "network" } = {}): Promise<string> =>
  machine.run(["ip", "netns", "exec", netns, "python3", "-", ...args.split(" ")], {
    input: script,
    timeoutMs: 300_000,
  });

/** Probes the programs, once at least, and returns the different answers. */
async function probed(seconds: number): Promise<string[]> {
  const answers = await hostile(`probe ${seconds} ${KUBELET} ${PROGRAMS_ADDRESS} ${egressPod} ${nodeAgent}`);
  return answers.trim().split("\n");
}

/** What probes find where they are answered: without API server neither program is ready. */
const ANSWERED = [egressPod, nodeAgent].flatMap((port) => [`${port}/healthz 200`, `${port}/readyz 503`]);

async function expectAlive(): Promise<void> {
  expect(Object.fromEntries(programs)).toEqual({
    "egress-pod": { ended: undefined },
    agent: { ended: undefined },
  });
  expect(await probed(0)).toEqual(ANSWERED);
  expect(await hostile(`heartbeat ${PROGRAMS_ADDRESS} ${HEARTBEAT_PORT}`)).toBe("2 0\n");
}

describe("the programs in a gateway and on a node live and answer", () => {
  test("after datagrams that are no heartbeats, or come from no port", async () => {
    await hostile(`datagrams ${PROGRAMS_ADDRESS} ${HEARTBEAT_PORT}`);
    await expectAlive();
  });

  test("after requests that are malformed, endless, half or broken off", async () => {
    await hostile(`http ${PROGRAMS_ADDRESS} ${egressPod} ${nodeAgent}`);
    await expectAlive();
  });

  test("after lines on the agent's socket that are no requests", async () => {
    await hostile(`lines ${AGENT_SOCKET}`, { netns: "programs" });
    await expectAlive();
  });

  test("after requests on the agent's socket that its plugin would not make, each of which is answered", async () => {
    const answers = await hostile(`requests ${AGENT_SOCKET}`, { netns: "programs" });
    // Error codes of the CNI specification: it cannot be read; try again later, because there is no API server.
    const [refused, waiting] = [6, 11];
    expect(answers.trim().split("\n")).toEqual([
      ...["ok", "ok", "ok", "ok", refused, refused].map((answer) => `delete ${answer}`),
      ...[waiting, waiting, waiting, waiting, refused, refused].map((answer) => `check ${answer}`),
      `add ${waiting}`,
      "mention ok",
    ]);
    await expectAlive();
  });

  test("while one source holds all the connections that it can", async () => {
    const file = "/run/hostile/holding";
    const ports = `${egressPod} ${nodeAgent}`;
    const holding = hostile(`hold ${file} ${ATTACKER} ${CONNECTIONS} ${PROGRAMS_ADDRESS} ${ports}`);
    await machine.run(`until [ -e ${file} ]; do sleep 0.2; done`);
    // To accept all of them may take an emulated processor some seconds.
    await vi.waitFor(async () => expect(await probed(0)).toEqual(ANSWERED), { timeout: 60_000 });
    expect(await probed(HOLD_SECONDS)).toEqual(ANSWERED);
    await machine.run(["rm", file]);
    await holding;
    await expectAlive();
  });

  test.runIf(long)("and close connections that say nothing", async () => {
    await Promise.all([egressPod, nodeAgent].map((port) => hostile(`silent ${PROGRAMS_ADDRESS} ${port}`)));
  });
});
