import {
  createTransport,
  loadCredentials,
  type Resource,
  resourcePath,
  type Transport,
} from "@egress-nat/kube";
import { settingsFrom } from "@egress-nat/test/e2e/kit/settings";
import { nearlyACidr, nearlyAnAddress } from "@egress-nat/test/fuzz/addresses";
import { kubectlBinary } from "@egress-nat/tools/system/client-tools";
import { execa } from "execa";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { Address, Cidr } from "./address.ts";
import { API_GROUP, API_VERSION } from "./names.ts";
import { EGRESS_RESOURCE, SLICE_RESOURCE } from "./resource.ts";
import { EGRESS_CASES } from "./testing/egress-cases.ts";

const apiVersion = `${API_GROUP}/${API_VERSION}`;

let kubectl: string;
let transport: Transport;

beforeAll(async () => {
  kubectl = await kubectlBinary();
  const credentials = await loadCredentials({ kubeconfig: inject("kubeconfig") });
  const ignore = () => undefined;
  transport = createTransport({
    credentials,
    logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
  });
});

afterAll(() => transport.close());

/** What the API server says to this object, as kubectl asks by default (unknown fields are refused); nothing is stored. */
async function dryRun(resource: Resource, object: object): Promise<string> {
  const request = {
    method: "POST",
    path: resourcePath(resource, { namespace: "default" }),
    query: { dryRun: "All", fieldValidation: "Strict" },
    body: { apiVersion, kind: resource.kind, ...object },
  } as const;
  return transport.request(request).then(
    () => "accepted",
    (error: unknown) => String(error),
  );
}

function run(args: readonly string[], input?: object) {
  return execa(kubectl, [`--kubeconfig=${inject("kubeconfig")}`, ...args], {
    reject: false,
    all: true,
    ...(input && { input: JSON.stringify(input) }),
  });
}

describe("the API server", () => {
  const cases = EGRESS_CASES.map((example) => ({ name: "nat", ...example }));

  test.each(cases.filter(({ refusal }) => refusal === undefined))(
    "accepts $title",
    async ({ name, spec }) => {
      expect(await dryRun(EGRESS_RESOURCE, { metadata: { name }, spec })).toBe("accepted");
    },
  );

  test.each(cases.filter(({ refusal }) => refusal !== undefined))(
    "refuses $title, and says why",
    async ({ name, spec, refusal }) => {
      expect(await dryRun(EGRESS_RESOURCE, { metadata: { name }, spec })).toContain(refusal);
    },
  );

  const slice = {
    apiVersion,
    kind: "EgressClientSlice",
    metadata: { name: "nat.node-1" },
    nodeName: "node-1",
    clients: [
      {
        namespace: "default",
        name: "client",
        uid: "u",
        addresses: ["10.244.0.7", "fd00:244::7"],
        addedAt: "2026-01-02T03:04:05.678901Z",
      },
    ],
  };
  const client = (change: object) => ({ ...slice, clients: [{ ...slice.clients[0], ...change }] });

  test("accepts a slice", async () => {
    expect(await dryRun(SLICE_RESOURCE, slice)).toBe("accepted");
  });

  test.each([
    ["an address that is none", client({ addresses: ["10.244.0"] }), '"10.244.0" is not an IP address'],
    ["a network for an address", client({ addresses: ["10.244.0.0/24"] }), "is not an IP address"],
    ["a client without address", client({ addresses: [] }), "should have at least 1 items"],
    ["a time that is none", client({ addedAt: "yesterday" }), "must be of type date-time"],
    [
      "a count that is not that of its clients",
      { ...slice, clientCount: 2 },
      "clientCount is not the number",
    ],
    ["no node", { ...slice, nodeName: undefined }, "nodeName: Required value"],
  ])("refuses a slice with %s", async (_, object, refusal) => {
    expect(await dryRun(SLICE_RESOURCE, object)).toContain(refusal);
  });

  test("does not let a slice move to another node", async () => {
    await run(["create", "-f", "-"], slice);
    try {
      const { all } = await run(["replace", "-f", "-"], { ...slice, nodeName: "node-2" });
      expect(all).toContain("nodeName cannot be changed");
    } finally {
      await run(["delete", "egressclientslice", slice.metadata.name]);
    }
  });
});

describe("a text is one for the API server and zod, or for neither,", () => {
  const requests = settingsFrom(process.env).long ? 50 : 5;
  const [addedAt, namespace] = ["2026-01-02T03:04:05Z", "default"];

  /** Which of some texts the API server names in its refusal of an object that has all of them. */
  async function refused(resource: Resource, object: object, field: RegExp): Promise<readonly number[]> {
    const answer = await dryRun(resource, { metadata: { name: "any" }, ...object });
    return Array.from(answer.matchAll(field), ([, index]) => Number(index));
  }

  test.each([
    [
      "as an address",
      Address,
      nearlyAnAddress,
      (texts: readonly string[]) => {
        const clients = texts.map((text) => ({ namespace, name: "c", uid: "u", addresses: [text], addedAt }));
        return refused(SLICE_RESOURCE, { nodeName: "n", clients }, /clients\[(\d+)\]\.addresses\[0\]: /g);
      },
    ],
    [
      "as a network",
      Cidr,
      nearlyACidr,
      (destinations: readonly string[]) =>
        refused(EGRESS_RESOURCE, { spec: { destinations } }, /spec\.destinations\[(\d+)\]: /g),
    ],
  ])("%s", async (_, schema, arbitrary, refusedByServer) => {
    // Longer ones are refused before anybody reads them.
    const short = arbitrary.filter((text) => text.length < 40);
    await fc.assert(
      fc.asyncProperty(fc.array(short, { minLength: 200, maxLength: 400 }), async (texts) => {
        const byZod = [...texts.keys()].filter((index) => !schema.safeParse(texts[index]).success);
        const byServer = await refusedByServer(texts);
        const textsOf = (indices: readonly number[]) => indices.map((index) => texts[index]);
        expect(textsOf(byServer)).toEqual(textsOf(byZod));
      }),
      { numRuns: requests },
    );
  });
});

describe("kubectl", () => {
  test("prints how many clients a slice has", async () => {
    const clients = ["a", "b"].map((name) => ({
      ...{ namespace: "default", name, uid: name, addresses: ["10.244.0.7"] },
      addedAt: "2026-01-02T03:04:05Z",
    }));
    const head = { apiVersion, kind: "EgressClientSlice", metadata: { name: "counted.node-1" } };
    await run(["create", "-f", "-"], { ...head, nodeName: "node-1", clients, clientCount: 2 });
    try {
      const { all } = await run(["get", "egcs", "counted.node-1"]);
      expect(all).toMatch(/^NAME +EGRESS +NODE +CLIENTS +AGE\ncounted\.node-1 +node-1 +2 +\d+s/);
    } finally {
      await run(["delete", "egressclientslice", "counted.node-1"]);
    }
  });

  test("prints how many gateways of an Egress are in which state", async () => {
    const metadata = { namespace: "default", name: "shown" };
    const egress = { apiVersion, kind: "Egress", metadata, spec: { destinations: ["0.0.0.0/0"] } };
    await run(["create", "-f", "-"], egress);
    try {
      const patch = JSON.stringify({ status: { gatewayStates: "2 Ready, 1 Suspect" } });
      await run(["patch", "egress", "shown", "--subresource=status", "--type=merge", "-p", patch]);
      const { all } = await run(["get", "egress", "shown", "-o", "wide"]);
      expect(all).toMatch(/ STATES\n.* 2 Ready, 1 Suspect *$/);
      expect((await run(["get", "egress", "shown"])).all).not.toContain("STATES");
    } finally {
      await run(["delete", "egress", "shown"]);
    }
  });

  test("explains every field of the spec", async () => {
    const { all } = await run(["explain", "egress.spec"]);
    const fields = [...all.matchAll(/^ {2}(\w+)\t<[^\n]*\n(?: {2}enum:[^\n]*\n)? {4}(\S.*)/gm)].map(
      ([, field]) => field,
    );
    expect(fields).toEqual([
      ...[
        "allowedNamespaces",
        "clientStartup",
        "destinations",
        "drainTimeoutSeconds",
        "excludedDestinations",
        "fouSourcePortAuto",
        "gatewaySelection",
        "natBackend",
        "originatingOnly",
        "podDisruptionBudget",
        "replicas",
      ],
      ...["sessionAffinity", "sessionAffinityConfig", "strategy", "subnets", "template", "uplinkProbe"],
    ]);
  });

  test("prints destinations and gateways under the short name", async () => {
    await run(["create", "-f", "-"], {
      apiVersion,
      kind: "Egress",
      metadata: { name: "printed" },
      spec: { destinations: ["192.0.2.0/24"], replicas: 0 },
    });
    try {
      const conditions = [
        { type: "Degraded", reason: "NoGateway", status: "True" },
        { type: "Ready", reason: "NoGateway", status: "False" },
      ].map((condition) => ({ message: "", lastTransitionTime: "2026-01-02T03:04:05Z", ...condition }));
      const status = { conditions, readyReplicas: 1, clients: 3 };
      const patch = JSON.stringify({ status });
      await run(["patch", "eg", "printed", "--subresource=status", "--type=merge", `--patch=${patch}`]);
      const { all } = await run(["get", "eg", "printed"]);
      expect(all).toMatch(
        /^NAME +DESTINATIONS +READY +DEGRADED +GATEWAYS +REPLICAS +CLIENTS +AGE\nprinted +\["192.0.2.0\/24"\] +False +NoGateway +1 +0 +3 +\d+s/,
      );
    } finally {
      await run(["delete", "egress", "printed"]);
    }
  });
});
