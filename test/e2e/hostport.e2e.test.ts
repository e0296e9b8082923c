import { afterAll, beforeAll, expect, test } from "vitest";
import { probePod } from "../bed/workload/manifests.ts";
import { ProbePod, WHOAMI_PORT } from "../bed/workload/probe-pod.ts";
import { INTERNET_EGRESS, NAMESPACE } from "./kit/names.ts";
import { client, describeOnline, gatewaysOf, kubectl, nodeOf, player } from "./kit/world.ts";

const HOST_PORT = 18_080;

const pod = probePod({
  ...client("porter", INTERNET_EGRESS),
  ports: [{ containerPort: WHOAMI_PORT, hostPort: HOST_PORT, protocol: "TCP" }],
});

describeOnline("a client with a hostPort", (internet) => {
  let porter: ProbePod;

  beforeAll(async () => {
    await kubectl.apply(pod);
    porter = await ProbePod.ready(kubectl, NAMESPACE, pod.metadata.name);
  });

  afterAll(() => kubectl.delete([pod], { wait: false }));

  test("answers callers from outside at its node's port, and sees who they are", async () => {
    const node = await nodeOf(porter);
    const caller = `TCP:${node.pod.ipv4}:${HOST_PORT},bind=${internet.wide.ipv4}`;
    expect(await internet.run("socat", "-T30", "-u", caller, "STDOUT")).toBe(internet.wide.ipv4);
  });

  test("answers the other node", async () => {
    const [node, alice, bob] = await Promise.all([nodeOf(porter), player("alice"), player("bob")]);
    const other = await nodeOf(porter.node === alice.node ? bob : alice);
    const answer = await other.run(
      `exec 3<>/dev/tcp/${node.pod.ipv4}/${HOST_PORT}; echo hello >&3; timeout 30 head -1 <&3`,
    );
    expect(answer.trim()).toBe(other.pod.ipv4);
  });

  test("uses the gateway for its own flows", async () => {
    const [v4, v6] = await porter.seenBy([internet.wide.ipv4, internet.wide.ipv6]);
    const gateways = await gatewaysOf(INTERNET_EGRESS);
    expect(gateways.map(({ ipv4 }) => ipv4)).toContain(v4?.tcp);
    expect(gateways.map(({ ipv6 }) => ipv6)).toContain(v6?.tcp);
  });
});
