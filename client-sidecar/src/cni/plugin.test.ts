import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canonicalAddress } from "@egress-nat/addresses";
import { createLogger } from "@egress-nat/program";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { NodeState } from "../records/node-state.ts";
import { recordId } from "../records/record-id.ts";
import { clientRecord } from "../testing/client-record.ts";
import { CompiledPlugin } from "../testing/compiled-plugin.ts";
import { FakeAgent } from "../testing/fake-agent.ts";
import { locationsIn } from "../testing/locations.ts";
import type { AgentReply } from "./protocol.ts";

const logger = createLogger({ name: "test", level: "silent" });

const CAPABILITY = "io.kubernetes.cri.pod-annotations";
const CLIENT = { "egress.coil.cybozu.com/internet": "nat" };

/** Of the client that {@link ENVIRONMENT} names. */
const RECORD = "c0ffee:eth0:pods";

const ENVIRONMENT = {
  CNI_COMMAND: "ADD",
  CNI_CONTAINERID: "c0ffee",
  CNI_NETNS: "/run/netns/cni-1",
  CNI_IFNAME: "eth0",
  CNI_PATH: "/opt/cni/bin",
  CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAMESPACE=apps;K8S_POD_NAME=web;K8S_POD_UID=u-1",
};

const RESULT = {
  cniVersion: "1.0.0",
  interfaces: [
    { name: "veth1", mac: "aa:bb:cc:dd:ee:ff" },
    { name: "eth0", sandbox: "/run/netns/cni-1" },
  ],
  ips: [
    { address: "10.244.0.5/24", gateway: "10.244.0.1", interface: 1 },
    { address: "FD00:244:0::5/64", interface: 1 },
  ],
  routes: [{ dst: "0.0.0.0/0" }],
  dns: {},
  unknown: { kept: true },
};

let plugin: CompiledPlugin;
let folder: string;
let state: NodeState;
let agent: FakeAgent | undefined;

beforeAll(async () => {
  plugin = await CompiledPlugin.compile();
});

afterAll(() => plugin.remove());

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "egress-nat-cni-"));
  state = new NodeState(locationsIn(folder), logger);
  mkdirSync(locationsIn(folder).runDirectory);
});

afterEach(async () => {
  await agent?.close();
  agent = undefined;
  rmSync(folder, { recursive: true });
});

async function startAgent(reply: AgentReply | "breaks" | "hangs" = { ok: true }): Promise<FakeAgent> {
  agent = await FakeAgent.start(join(locationsIn(folder).runDirectory, "agent.sock"), reply);
  return agent;
}

function configuration(annotations: unknown, fields: object = {}): object {
  return {
    cniVersion: "1.0.0",
    name: "pods",
    type: "egress-nat",
    prevResult: RESULT,
    ...(annotations === undefined ? {} : { runtimeConfig: { [CAPABILITY]: annotations } }),
    ...fields,
  };
}

function run(stdin: object | string, environment: object = {}) {
  const text = typeof stdin === "string" ? stdin : JSON.stringify(stdin);
  return plugin.run(folder, { ...ENVIRONMENT, ...environment }, text);
}

describe("ADD of a pod that is no client", () => {
  it.each([
    ["without annotations", null],
    ["with annotations of others", { "example.com/a": "b" }],
    ["with a gateway annotation that is not true", { "coil.cybozu.com/egress-gateway": "false" }],
  ])("%s passes the previous result through unchanged, and asks nobody", async (_, annotations) => {
    const { requests } = await startAgent();
    expect(await run(configuration(annotations))).toEqual({ exitCode: 0, result: RESULT });
    expect(requests).toEqual([]);
  });

  it("is mentioned to the agent where an annotation was meant for it, by the look of its key", async () => {
    const { requests } = await startAgent();
    const annotations = { "egres.coil.cybozu.com/internet": "nat", "example.com/a": "b" };
    expect(await run(configuration(annotations))).toEqual({ exitCode: 0, result: RESULT });
    expect(requests).toEqual([
      {
        operation: "mention",
        pod: { namespace: "apps", name: "web", uid: "u-1" },
        keys: ["egres.coil.cybozu.com/internet"],
      },
    ]);
  });

  it.each([
    ["is not there", undefined],
    ["refuses it", { ok: false, code: 6, message: "not what this version expects" } as const],
    ["breaks the connection", "breaks" as const],
    ["does not answer", "hangs" as const],
  ])("starts all the same when the agent %s", async (_, reply) => {
    if (reply !== undefined) await startAgent(reply);
    const added = await run(configuration({ "egres.coil.cybozu.com/internet": "nat" }));
    expect(added).toEqual({ exitCode: 0, result: RESULT });
  });

  it("is refused an address that a gateway may still trust", async () => {
    state.writeTrusted({ address: "fd00:244::5", egresses: [] });
    const { exitCode, result } = await run(configuration(null));
    expect(exitCode).toBe(1);
    expect(result).toMatchObject({
      cniVersion: "1.0.0",
      code: 11,
      msg: expect.stringMatching(/address fd00:244::5 belongs or belonged to a client/),
      details: expect.stringMatching(
        /the log of the node agent names one that does not answer: .*kubectl get pods/,
      ),
    });
  });

  it("does not look at addresses of the node's end of the link", async () => {
    state.writeTrusted({ address: "10.244.0.1", egresses: [] });
    const prevResult = { ...RESULT, ips: [...RESULT.ips, { address: "10.244.0.1/24", interface: 0 }] };
    expect((await run(configuration(null, { prevResult }))).exitCode).toBe(0);
  });

  it("that is no Kubernetes pod needs no annotations", async () => {
    expect(await run(configuration(undefined), { CNI_ARGS: "" })).toEqual({ exitCode: 0, result: RESULT });
  });

  it.each(["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"])(
    "works with a configuration of version %s",
    async (cniVersion) => {
      const prevResult = {
        cniVersion,
        ips: [{ version: "4", address: "10.244.0.5/24", interface: 1 }],
        interfaces: RESULT.interfaces,
      };
      expect(await run(configuration(null, { cniVersion, prevResult }))).toEqual({
        exitCode: 0,
        result: prevResult,
      });
    },
  );
});

describe("a previous result of another version", () => {
  const address = { address: "fd00:244::5/64", interface: 1 };

  it.each([
    ["0.4.0", { version: "6", ...address }, "1.1.0", address],
    ["1.0.0", address, "0.3.1", { version: "6", ...address }],
    ["1.0.0", address, "1.1.0", address],
    [undefined, address, "1.0.0", address],
  ])("of %s is answered in that of the configuration", async (own, ip, cniVersion, answered) => {
    const { cniVersion: _, ...result } = RESULT;
    const prevResult = { ...(own !== undefined && { cniVersion: own }), ...result, ips: [ip] };
    expect(await run(configuration(null, { cniVersion, prevResult }))).toEqual({
      exitCode: 0,
      result: { ...RESULT, cniVersion, ips: [answered] },
    });
  });

  it.each(["0.2.0", "2.0.0", 1])("%j that is not supported is refused", async (cniVersion) => {
    const { exitCode, result } = await run(configuration(null, { prevResult: { ...RESULT, cniVersion } }));
    expect(exitCode).toBe(1);
    expect(result).toMatchObject({ code: 1, msg: expect.stringContaining(JSON.stringify(cniVersion)) });
  });
});

describe("stdin", () => {
  const env = { ...process.env, CNI_COMMAND: "VERSION" };

  it("may be a pipe that does not block", () => {
    const script = `
import fcntl, os, subprocess, sys, termios, time
r, w = os.pipe()
fcntl.fcntl(r, fcntl.F_SETFL, os.O_NONBLOCK)
plugin = subprocess.Popen(sys.argv[1:], stdin=r)
os.write(w, b'{"cniVersion":')
while plugin.poll() is None and fcntl.ioctl(r, termios.FIONREAD, bytes(4)) != bytes(4):
    time.sleep(0.001)
os.write(w, b'"0.4.0"}')
os.close(w)
sys.exit(plugin.wait())`;
    const { stdout } = spawnSync("python3", ["-c", script, ...plugin.command], { env, encoding: "utf8" });
    expect(JSON.parse(stdout)).toMatchObject({ cniVersion: "0.4.0" });
  });

  it("may nest deeper than a small stack holds", () => {
    const script = 'ulimit -s 1024; exec "$@"';
    const { status, stdout } = spawnSync("sh", ["-c", script, "sh", ...plugin.command], {
      ...{ env: { ...env, CNI_COMMAND: "STATUS" }, encoding: "utf8", input: "[".repeat(100_000) },
    });
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ code: 6 });
  });

  it("that cannot be read is told as CNI has it", () => {
    const { status, stdout } = spawnSync("sh", ["-c", 'exec "$@" < /', "sh", ...plugin.command], {
      env,
      encoding: "utf8",
    });
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      code: 5,
      msg: expect.stringMatching(/cannot read stdin: Is a directory/),
    });
  });
});

describe("ADD of a client", () => {
  it.each(["ips", "ip"])(
    "of version 0.3.0 has the addresses in %s: libcni and the specification differ",
    async (key) => {
      const { requests } = await startAgent();
      const prevResult = {
        cniVersion: "0.3.0",
        interfaces: RESULT.interfaces,
        [key]: [{ version: "4", address: "10.244.0.5/24", interface: 1 }],
      };
      const added = await run(configuration(CLIENT, { cniVersion: "0.3.0", prevResult }));
      expect(added).toEqual({ exitCode: 0, result: prevResult });
      expect(requests).toMatchObject([{ addresses: ["10.244.0.5"] }]);
    },
  );

  it("hands the agent the pod, its canonical addresses and those annotations that concern it", async () => {
    const { requests } = await startAgent();
    const added = await run(configuration({ ...CLIENT, "example.com/secret": "x" }));
    expect(added).toEqual({ exitCode: 0, result: RESULT });
    expect(requests).toEqual([
      {
        operation: "add",
        network: "pods",
        containerId: "c0ffee",
        netns: "/run/netns/cni-1",
        ifname: "eth0",
        pod: { namespace: "apps", name: "web", uid: "u-1" },
        addresses: ["10.244.0.5", "fd00:244::5"],
        annotations: CLIENT,
      },
    ]);
  });

  it("is mentioned for another annotation that it has got wrong", async () => {
    const { requests } = await startAgent();
    await run(configuration({ ...CLIENT, "coil.cybozu.com/office": "nat" }));
    expect(requests).toMatchObject([
      { operation: "add", annotations: CLIENT },
      { operation: "mention", keys: ["coil.cybozu.com/office"] },
    ]);
  });

  it("hands over annotations of any length that Kubernetes allows, in as many parts as the socket takes", async () => {
    const { requests } = await startAgent();
    const annotations = { "egress.coil.cybozu.com/internet": "é".repeat(125_000) };
    expect(await run(configuration(annotations))).toEqual({ exitCode: 0, result: RESULT });
    expect(requests).toMatchObject([{ annotations }]);
  });

  it("lets a gateway through to the agent as well", async () => {
    const { requests } = await startAgent();
    await run(configuration({ "coil.cybozu.com/egress-gateway": "true" }));
    expect(requests).toMatchObject([{ annotations: { "coil.cybozu.com/egress-gateway": "true" } }]);
  });

  it("leaves it to the agent to look up annotations that the runtime does not pass", async () => {
    const { requests } = await startAgent();
    await run(configuration(undefined));
    expect(requests).toMatchObject([{ operation: "add", pod: { namespace: "apps", name: "web" } }]);
    expect(requests[0]).not.toHaveProperty("annotations");
  });

  it("reports what the agent says is wrong", async () => {
    await startAgent({
      ok: false,
      code: 11,
      message: "Egress internet/nat does not exist",
      details: "create it",
    });
    expect(await run(configuration(CLIENT))).toEqual({
      exitCode: 1,
      result: {
        cniVersion: "1.0.0",
        code: 11,
        msg: "Egress internet/nat does not exist",
        details: "create it",
      },
    });
  });

  it("is to be tried again when the agent is not there, and says where to look", async () => {
    const { exitCode, result } = await run(configuration(CLIENT));
    expect(exitCode).toBe(1);
    expect(result).toMatchObject({
      code: 11,
      msg: expect.stringMatching(
        /^pod apps\/web is a client.*node agent of egress-nat does not answer on .*agent\.sock: No such file or directory$/,
      ),
      details: expect.stringMatching(/kubectl get pods .*node-agent/),
    });
  });

  it("is to be tried again when the agent dies before it has answered", async () => {
    await startAgent("breaks");
    expect(await run(configuration(CLIENT))).toMatchObject({
      exitCode: 1,
      result: { code: 11, msg: expect.stringMatching(/closed before an answer came$/) },
    });
  });
});

describe("DEL", () => {
  it("of a pod that is no client asks nobody", async () => {
    expect(await run(configuration(null), { CNI_COMMAND: "DEL" })).toEqual({
      exitCode: 0,
      result: undefined,
    });
  });

  it("of a client tells the agent, and leaves the rest to it", async () => {
    const { requests } = await startAgent();
    state.writeRecord(clientRecord());
    expect((await run({}, { CNI_COMMAND: "DEL", CNI_NETNS: "" })).exitCode).toBe(0);
    expect(requests).toEqual([{ operation: "delete", records: [RECORD] }]);
    expect(state.hasRecord(RECORD)).toBe(true);
  });

  it.each([
    ["the network and the interface that it names", { name: "pods" }, { CNI_IFNAME: "eth0" }, [RECORD]],
    ["another network", { name: "storage" }, { CNI_IFNAME: "net1" }, ["c0ffee:net1:storage"]],
    ["the interface, where it names no network", {}, { CNI_IFNAME: "eth0" }, [RECORD]],
    ["nothing, where the network is not one of the container's", { name: "other" }, {}, []],
  ])("ends the client of %s", async (_, stdin, environment, records) => {
    const { requests } = await startAgent();
    state.writeRecord(clientRecord());
    state.writeRecord(clientRecord({ network: "storage", ifname: "net1" }));
    state.writeRecord(clientRecord({ containerId: "c0ffee2" }));
    await run(stdin, { CNI_COMMAND: "DEL", ...environment });
    expect(requests).toEqual(records.length === 0 ? [] : [{ operation: "delete", records }]);
  });

  it("knows a client of the version before, which has kept no network, by its container and interface", async () => {
    const { requests } = await startAgent();
    const { network: _, ...record } = clientRecord();
    state.writeRecord(record);
    await run(configuration(null, { name: "storage" }), { CNI_COMMAND: "DEL", CNI_IFNAME: "net1" });
    expect(requests).toEqual([]);
    await run(configuration(null), { CNI_COMMAND: "DEL" });
    expect(requests).toEqual([{ operation: "delete", records: ["c0ffee"] }]);
  });

  it.each([
    ["is not there", undefined],
    ["fails", { ok: false, code: 11, message: "no" } as const],
  ])("succeeds when the agent %s, and keeps the addresses out of use", async (_, reply) => {
    if (reply !== undefined) await startAgent(reply);
    const address = "10.244.0.5";
    state.writeTrusted({ address, record: RECORD, egresses: [] });
    state.writeRecord(clientRecord({ addresses: [address] }));
    expect(await run("not even JSON", { CNI_COMMAND: "DEL" })).toEqual({ exitCode: 0, result: undefined });
    expect(state.hasRecord(RECORD)).toBe(false);
    expect((await run(configuration(null))).result).toMatchObject({ code: 11 });
  });
});

describe("names of any length", () => {
  const containerId = "c".repeat(500);
  const name = "n".repeat(300);

  it("are those of a client until its DEL", async () => {
    const { requests } = await startAgent();
    const record = clientRecord({ containerId, network: name });
    state.writeRecord(record);
    state.writeRecord(clientRecord({ containerId: `${containerId}2`, network: name }));
    const environment = { CNI_COMMAND: "DEL", CNI_CONTAINERID: containerId };
    expect(await run(configuration(null, { name }), environment)).toMatchObject({ exitCode: 0 });
    expect(requests).toEqual([{ operation: "delete", records: [recordId(record)] }]);
  });

  it("are known to GC", async () => {
    const { requests } = await startAgent();
    state.writeRecord(clientRecord({ containerId, network: name }));
    const stale = clientRecord({ containerId: `${containerId}2`, network: name });
    state.writeRecord(stale);
    const valid = [{ containerID: containerId, ifname: "eth0" }];
    const stdin = configuration(null, { cniVersion: "1.1.0", name, "cni.dev/valid-attachments": valid });
    expect(await run(stdin, { CNI_COMMAND: "GC" })).toMatchObject({ exitCode: 0 });
    expect(requests).toEqual([{ operation: "delete", records: [recordId(stale)] }]);
  });
});

it("ADD of what is attached already says that DEL comes first", async () => {
  const address = "10.244.0.5";
  state.writeTrusted({ address, record: RECORD, egresses: [] });
  state.writeRecord(clientRecord({ addresses: [address] }));
  expect(await run(configuration(CLIENT))).toMatchObject({
    exitCode: 1,
    result: {
      code: 4,
      msg: expect.stringMatching(/^container c0ffee is attached to network pods by eth0 already/),
      details: expect.stringMatching(/DEL/),
    },
  });
});

describe("CHECK", () => {
  const NETNS = "/proc/self/ns/net";
  const CHECK = { CNI_COMMAND: "CHECK", CNI_NETNS: NETNS };

  it("of a pod that is no client finds nothing", async () => {
    expect(await run(configuration(null), CHECK)).toEqual({ exitCode: 0, result: undefined });
  });

  it("of a client reports what the agent finds", async () => {
    await startAgent({ ok: false, code: 101, message: "a route is missing" });
    state.writeRecord(clientRecord());
    expect(await run(configuration(null), CHECK)).toMatchObject({
      exitCode: 1,
      result: { code: 101, msg: "a route is missing" },
    });
  });

  it("tells the agent which namespace and addresses the runtime knows", async () => {
    const { requests } = await startAgent();
    state.writeRecord(clientRecord());
    expect(await run(configuration(CLIENT), CHECK)).toEqual({ exitCode: 0, result: undefined });
    const addresses = ["10.244.0.5", "fd00:244::5"];
    expect(requests).toEqual([{ operation: "check", record: RECORD, netns: NETNS, addresses }]);
  });

  it("finds a pod that asks for an Egress and is no client", async () => {
    expect(await run(configuration(CLIENT), CHECK)).toMatchObject({
      exitCode: 1,
      result: { code: 101, msg: expect.stringContaining("egress.coil.cybozu.com/internet") },
    });
  });

  it("finds that the network namespace is gone", async () => {
    expect(await run(configuration(null), { ...CHECK, CNI_NETNS: "/run/netns/gone" })).toMatchObject({
      exitCode: 1,
      result: { code: 3, msg: "there is no network namespace /run/netns/gone" },
    });
  });
});

describe("GC", () => {
  const GC = { CNI_COMMAND: "GC", CNI_CONTAINERID: "", CNI_NETNS: "", CNI_IFNAME: "" };
  const of = (attachments: unknown) =>
    configuration(undefined, { cniVersion: "1.1.0", "cni.dev/valid-attachments": attachments });

  it("deletes the clients that the runtime does not know any more", async () => {
    const { requests } = await startAgent();
    for (const containerId of ["kept", "stale"]) state.writeRecord(clientRecord({ containerId }));
    expect(await run(of([{ containerID: "kept", ifname: "eth0" }]), GC)).toEqual({
      exitCode: 0,
      result: undefined,
    });
    expect(requests).toEqual([{ operation: "delete", records: ["stale:eth0:pods"] }]);
  });

  it("leaves the clients of other networks alone, and those whose network an earlier version has not kept", async () => {
    const { requests } = await startAgent();
    const { network: _, ...former } = clientRecord({ containerId: "former" });
    for (const record of [clientRecord({ network: "storage" }), former, clientRecord()]) {
      state.writeRecord(record);
    }
    expect(await run(of([{ containerID: "c0ffee", ifname: "net1" }]), GC)).toMatchObject({ exitCode: 0 });
    expect(requests).toEqual([{ operation: "delete", records: [RECORD] }]);
  });

  it("ends all of them at once", async () => {
    const { requests } = await startAgent();
    const ids = ["a", "b", "c"];
    for (const containerId of ids) state.writeRecord(clientRecord({ containerId }));
    expect(await run(of([]), GC)).toMatchObject({ exitCode: 0 });
    expect(requests).toHaveLength(1);
    const [request] = requests;
    const records = request?.operation === "delete" ? request.records : [];
    expect(records.toSorted()).toEqual(ids.map((id) => `${id}:eth0:pods`));
  });

  it("removes those that can be removed, where the agent is not there, and says what cannot", async () => {
    for (const containerId of ["a", "c"]) state.writeRecord(clientRecord({ containerId }));
    mkdirSync(join(locationsIn(folder).runDirectory, "clients/b:eth0:pods.json"));
    expect(await run(of([]), GC)).toMatchObject({
      exitCode: 1,
      result: { code: 5, msg: expect.stringContaining("b:eth0:pods.json: Is a directory") },
    });
    expect(state.recordIds()).toEqual(["b:eth0:pods"]);
  });

  it("takes null for an empty list, as Go writes one", async () => {
    const { requests } = await startAgent();
    state.writeRecord(clientRecord());
    expect(await run(of(null), GC)).toEqual({ exitCode: 0, result: undefined });
    expect(requests).toEqual([{ operation: "delete", records: [RECORD] }]);
  });

  it.each([[undefined], ["x"], [[{}]]])("deletes nothing where the list is %j", async (attachments) => {
    state.writeRecord(clientRecord());
    expect(await run(of(attachments), GC)).toMatchObject({ exitCode: 1, result: { code: 7 } });
    expect(state.hasRecord(RECORD)).toBe(true);
  });

  it("deletes nothing where the network has no name", async () => {
    const nameless = { ...of([]), name: undefined };
    expect(await run(nameless, GC)).toMatchObject({ exitCode: 1, result: { code: 7 } });
  });
});

it("STATUS is good without the agent, as other pods need none", async () => {
  const environment = { CNI_COMMAND: "STATUS" };
  expect(await run(configuration(null, { cniVersion: "1.1.0" }), environment)).toEqual({
    exitCode: 0,
    result: undefined,
  });
});

it("STATUS says that no pod can be added where nobody can know which addresses are free", async () => {
  const { stateDirectory } = locationsIn(folder);
  mkdirSync(stateDirectory, { recursive: true });
  writeFileSync(join(stateDirectory, "addresses"), "");
  const status = await run(configuration(null, { cniVersion: "1.1.0" }), { CNI_COMMAND: "STATUS" });
  expect(status).toMatchObject({
    exitCode: 1,
    result: { code: 50, msg: expect.stringMatching(/Not a directory/) },
  });
  expect(await run(configuration(null))).toMatchObject({ exitCode: 1, result: { code: 5 } });
});

describe("VERSION", () => {
  it.each([
    ["", "1.1.0"],
    [`{"cniVersion":"0.4.0"}`, "0.4.0"],
  ])("answers %j", async (stdin, cniVersion) => {
    expect(await run(stdin, { CNI_COMMAND: "VERSION" })).toEqual({
      exitCode: 0,
      result: { cniVersion, supportedVersions: ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] },
    });
  });
});

it("spells addresses as those who compare them do", async () => {
  const { requests } = await startAgent();
  const translated = fc.tuple(fc.constantFrom("::", "::ffff:"), fc.ipV4()).map((parts) => parts.join(""));
  const addresses = fc.sample(fc.oneof(fc.ipV4(), fc.ipV6(), translated), 500);
  const ips = addresses.map((address) => ({ address: `${address.toUpperCase()}/64` }));
  expect(await run(configuration(CLIENT, { prevResult: { cniVersion: "1.0.0", ips } }))).toMatchObject({
    exitCode: 0,
  });
  expect(requests).toMatchObject([{ addresses: [...new Set(addresses.map(canonicalAddress))] }]);
});

describe("malformed input", () => {
  const good = configuration(CLIENT);
  it.each<[string, object | string, object, number, RegExp]>([
    ["no command", good, { CNI_COMMAND: undefined }, 4, /CNI_COMMAND is ""/],
    ["an unknown command", good, { CNI_COMMAND: "add" }, 4, /one of ADD, DEL/],
    ["no container id", good, { CNI_CONTAINERID: undefined }, 4, /CNI_CONTAINERID/],
    ["a container id that is a path", good, { CNI_CONTAINERID: "../x" }, 4, /CNI_CONTAINERID is "\.\.\/x"/],
    ["DEL without container id", good, { CNI_COMMAND: "DEL", CNI_CONTAINERID: "" }, 4, /CNI_CONTAINERID/],
    ["no netns", good, { CNI_NETNS: "" }, 4, /CNI_NETNS/],
    ["a relative netns", good, { CNI_NETNS: "netns/x" }, 4, /absolute path/],
    ["no interface", good, { CNI_IFNAME: "" }, 4, /CNI_IFNAME/],
    ["an interface that is a path", good, { CNI_IFNAME: "a/b" }, 4, /CNI_IFNAME/],
    ["an interface name that is too long", good, { CNI_IFNAME: "eth0123456789012" }, 4, /15 characters/],
    ["a client whose name is not passed", good, { CNI_ARGS: "K8S_POD_NAME=web" }, 4, /K8S_POD_NAMESPACE/],
    ["malformed CNI_ARGS of a client", good, { CNI_ARGS: ";;=;x" }, 4, /CNI_ARGS/],
    ["empty stdin", "", {}, 6, /not JSON/],
    ["half of a configuration", `{"cniVersion":"1.0.0"`, {}, 6, /not JSON/],
    ["a list for a configuration", "[]", {}, 6, /not a JSON object/],
    ["no cniVersion", configuration(null, { cniVersion: undefined }), {}, 7, /cniVersion is missing/],
    ["a number for cniVersion", configuration(null, { cniVersion: 1 }), {}, 7, /cniVersion/],
    ["an old cniVersion", configuration(null, { cniVersion: "0.2.0" }), {}, 1, /"0\.2\.0" is not supported/],
    [
      "a future cniVersion",
      configuration(null, { cniVersion: "2.0.0" }),
      {},
      1,
      /"2\.0\.0" is not supported/,
    ],
    [
      "CHECK in 0.3.1",
      configuration(null, { cniVersion: "0.3.1" }),
      { CNI_COMMAND: "CHECK" },
      1,
      /no command CHECK/,
    ],
    ["GC in 1.0.0", good, { CNI_COMMAND: "GC" }, 1, /no command GC/],
    ["STATUS in 1.0.0", good, { CNI_COMMAND: "STATUS" }, 1, /no command STATUS/],
    [
      "GC without CNI_PATH",
      configuration(null, { cniVersion: "1.1.0", "cni.dev/valid-attachments": [] }),
      { CNI_COMMAND: "GC", CNI_PATH: "" },
      4,
      /CNI_PATH is missing/,
    ],
    ["a network without a name", configuration(null, { name: undefined }), {}, 7, /name is missing/],
    ["a network whose name is a path", configuration(null, { name: "a/b" }), {}, 7, /name is "a\/b"/],
    ["a network with an empty name", configuration(null, { name: "" }), {}, 7, /name is ""/],
    ["no prevResult", configuration(null, { prevResult: undefined }), {}, 7, /prevResult is missing/],
    ["a string for prevResult", configuration(null, { prevResult: "x" }), {}, 7, /prevResult/],
    ["no list for ips", configuration(null, { prevResult: { ips: {} } }), {}, 7, /malformed address/],
    ["an ip without address", configuration(null, { prevResult: { ips: [{}] } }), {}, 7, /malformed address/],
    [
      "a wrong IPv4 address",
      configuration(null, { prevResult: { ips: [{ address: "10.0.0.256/8" }] } }),
      {},
      7,
      /malformed/,
    ],
    [
      "an octal IPv4 address",
      configuration(null, { prevResult: { ips: [{ address: "010.0.0.1/8" }] } }),
      {},
      7,
      /malformed/,
    ],
    [
      "a wrong IPv6 address",
      configuration(null, { prevResult: { ips: [{ address: "fd00::g/64" }] } }),
      {},
      7,
      /malformed/,
    ],
    [
      "an address with a zero byte",
      configuration(null, { prevResult: { ips: [{ address: "10.0.0.1\0/24" }] } }),
      {},
      7,
      /malformed/,
    ],
    [
      "an address that is a path",
      configuration(null, { prevResult: { ips: [{ address: "../../x" }] } }),
      {},
      7,
      /malformed/,
    ],
    ["annotations that are a list", configuration([]), {}, 7, /not a map of strings/],
    ["annotations that are no strings", configuration({ a: 1 }), {}, 7, /not a map of strings/],
  ])("%s is refused with a code and a message", async (_, stdin, environment, code, message) => {
    const { exitCode, result } = await run(stdin, environment);
    expect(exitCode).toBe(1);
    expect(result).toMatchObject({
      cniVersion: expect.any(String),
      code,
      msg: expect.stringMatching(message),
    });
  });
});
