import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import type { Command } from "../kernel/step.ts";
import { clientConfig, egress, clientFacts as facts } from "../testing/configs.ts";
import type { ClientConfig, ClientEgress, ClientGateway } from "./config.ts";
import { Known } from "./known.ts";
import { planClient } from "./plan.ts";

const A = { ipv4: "10.244.1.1", ipv6: "fd00:244:1::1" };
const B = { ipv4: "10.244.1.2", ipv6: "fd00:244:1::2" };
const C = { ipv4: "10.244.1.3", ipv6: "fd00:244:1::3" };
const existing = (gateway: ClientGateway): ClientGateway => ({ ...gateway, flows: "existing" });
const spare = (gateway: ClientGateway): ClientGateway => ({ ...gateway, flows: "spare" });
const use = (...gateways: readonly ClientGateway[]): ClientConfig => clientConfig(egress({ gateways }));

function known(...gateways: readonly ClientGateway[]): Known {
  return new Known(use(...gateways), facts, planClient(use(...gateways), facts));
}

/** What a steering does, in words. */
function words(from: Known, ...gateways: readonly ClientGateway[]): string[] | undefined {
  return from.steering(use(...gateways))?.steps.flatMap((step) => {
    if (!("file" in step)) return [];
    return [...(step.input ? ["lead"] : []), ...(marksEndedBy(step).length > 0 ? ["end flows"] : [])];
  });
}

/** After how many messages lead, and the mask of the marks. */
function marksEndedBy({ args }: Command): readonly string[] {
  return args.slice(5);
}

test("it takes a look where an Egress has an address that was another one's, whose routes lead there", () => {
  const besides = (nat: ClientGateway, partners: ClientGateway) =>
    clientConfig(egress({ gateways: [nat, C] }), egress({ name: "partners/nat", gateways: [partners, C] }));
  const from = new Known(besides(A, B), facts, planClient(besides(A, B), facts));
  expect(from.steering(besides(C, B))).toBeDefined();
  expect(from.steering(besides(C, A))).toBeUndefined();
});

test("where flows go there already nothing is to be done", () => {
  expect(words(known(A, spare(B)), A, spare(B))).toEqual([]);
  expect(words(known(A), A, existing(C))).toEqual([]);
});

test("one transaction leads them to a gateway with a tunnel, and none to one without", () => {
  expect(words(known(A, spare(B)), B, existing(A))).toEqual(["lead"]);
  expect(words(known(A, B), A, existing(B))).toEqual(["lead"]);
  expect(words(known(A), C, existing(A))).toBeUndefined();
});

test("a spare gateway is not waited for: it gets its tunnel by a look", () => {
  expect(words(known(A, spare(B)), B, spare(C), existing(A))).toEqual(["lead"]);
  expect(words(known(A, spare(B)), B, spare(C))).toEqual(["lead", "end flows"]);
  expect(words(known(A, spare(B)), A, spare(C), existing(B))).toEqual([]);
});

test("nor is another one, as long as there is one for new flows with a tunnel: the rest does not wait for it", () => {
  expect(words(known(A, B), A, C, existing(B))).toEqual(["lead"]);
  expect(words(known(A, B), A, C)).toEqual(["lead", "end flows"]);
  expect(words(known(A, B), A, B, C)).toEqual([]);
  expect(words(known(A, B), A, { ipv6: C.ipv6 }, existing({ ipv4: B.ipv4 }))).toEqual(["lead", "end flows"]);
  const ofOneFamily = words(known(A, B), { ipv4: A.ipv4 }, C, existing({ ipv6: A.ipv6 }), existing(B));
  expect(ofOneFamily).toBeUndefined();
});

test("the other address of a gateway that has a new one keeps its flows", () => {
  const ended = (...gateways: readonly ClientGateway[]) =>
    known(A, B)
      .steering(use(...gateways))
      ?.steps.flatMap((step) => ("file" in step ? marksEndedBy(step) : []));
  expect(ended(A, { ipv4: B.ipv4, ipv6: C.ipv6 })).toEqual(ended(A, { ipv4: B.ipv4 }));
  expect(ended(A, { ipv4: B.ipv4, ipv6: C.ipv6 })).not.toEqual(ended(A));
});

test("a spare gateway takes new flows while the one that is to take them has no tunnel", () => {
  expect(words(known(A, spare(B)), C, spare(B), existing(A))).toEqual(["lead"]);
  expect(words(known(A, spare(B)), C, spare(B))).toEqual(["lead", "end flows"]);
  expect(words(known(A), C, spare(B), existing(A))).toBeUndefined();
});

test.each<[string, Partial<ClientEgress>]>([
  ["destinations", { destinations: ["192.0.2.0/24"] }],
  ["exclusions", { excluded: ["192.0.2.0/24"] }],
  ["the source port", { sourcePortAuto: true }],
])("where the configuration has other %s as well, nothing is led before all of it is done", (_, changes) => {
  const config = clientConfig(egress({ gateways: [B, existing(A)], ...changes }));
  expect(known(A, spare(B)).steering(config)).toBeUndefined();
});

test("the fork server can have it compiled: its subs share no variables with the rest of it", () => {
  const [step] = known(A, spare(B)).steering(use(B))?.steps ?? [];
  if (step === undefined || !("file" in step)) return expect.fail();
  const asSub = `use warnings 'closure'; my $program = sub {\n${step.args[1]}\n};`;
  expect(spawnSync("perl", ["-e", asSub], { encoding: "utf8" })).toMatchObject({ status: 0, stderr: "" });
});

test("flows of gateways that are not named end, in each family", () => {
  expect(words(known(A, spare(B)), B)).toEqual(["lead", "end flows"]);
});

test("flows of an Egress that had no gateway wait for a look: no route leads to one yet", () => {
  const { pins } = planClient(use(A), facts).policy;
  const linked = { ...facts, pins: new Map(pins.map(({ link, number }) => [link, number])) };
  const unserved = use(existing(A));
  const from = new Known(unserved, linked, planClient(unserved, linked));
  expect(words(from, existing(A))).toEqual([]);
  expect(words(from, A)).toBeUndefined();
});

test("answers of a gateway whose address nobody has admitted wait for a look where source ports vary", () => {
  const from = clientConfig(egress({ gateways: [A], peers: [A.ipv4], sourcePortAuto: true }));
  const auto = new Known(from, facts, planClient(from, facts));
  const admitting = (peers: readonly string[]) =>
    clientConfig(egress({ gateways: [A], peers, sourcePortAuto: true }));
  expect(auto.steering(admitting([A.ipv4, B.ipv4]))).toBeUndefined();
  expect(auto.steering(admitting([]))?.steps).toEqual([]);
  const leaving = clientConfig(egress({ gateways: [existing(A)], peers: [C.ipv4], sourcePortAuto: true }));
  expect(auto.steering(leaving)?.steps).toHaveLength(1);
});

test("a tunnel is there until a look has taken it away", () => {
  const steered = known(A, spare(B)).steering(use(B))?.known ?? expect.fail();
  expect(words(steered, B)).toEqual([]);
  expect(words(steered, A, existing(B))).toEqual(["lead"]);
  expect(steered.markTo(A.ipv4)).toBeDefined();
});

test("packets to each gateway with a tunnel have a mark of their own", () => {
  const from = known(A, spare(B));
  const marks = [A, B].flatMap(({ ipv4, ipv6 }) => [from.markTo(ipv4), from.markTo(ipv6)]);
  expect(new Set(marks).size).toBe(4);
  expect(from.markTo(C.ipv4)).toBeUndefined();
});
