import { OPERATOR } from "@egress-nat/crds";
import { expect, test } from "vitest";
import { formerAccounts } from "./former-accounts.ts";
import { NO_CHILDREN, type ObservedRoleBinding } from "./observed.ts";
import { deploymentOfRelease, manifestOf, SETTINGS } from "./testing/children.ts";
import { anEgress } from "./testing/egress.ts";

const before = anEgress({});
const after = anEgress({ template: { spec: { serviceAccountName: "gateway", containers: [] } } });
const gateway = (terminating = false) => ({ terminating });

/** A RoleBinding as the operator has applied it. */
function bindingOf(...accounts: readonly string[]): ObservedRoleBinding {
  const { apiVersion, kind, metadata } = manifestOf("roleBinding", before);
  const { name, namespace } = metadata;
  const applied = { manager: OPERATOR, operation: "Apply", fieldsV1: { "f:subjects": {} } };
  return {
    ...{ apiVersion, kind },
    metadata: { name, namespace, uid: "b", resourceVersion: "1", managedFields: [applied] },
    subjects: accounts.map((account) => ({ kind: "ServiceAccount", name: account, namespace })),
  };
}

function deploymentOf(egress: typeof before, status: object = {}, generation = 1) {
  const { deployment } = deploymentOfRelease(SETTINGS.image, egress);
  if (deployment === undefined) throw new Error("there is none");
  return {
    ...deployment,
    metadata: { ...deployment.metadata, generation },
    status: { ...deployment.status, ...status },
  };
}

const both = bindingOf("gateway", "nat");

test.each([
  ["before the Deployment is changed", bindingOf("nat"), deploymentOf(before), [gateway()]],
  ["before the change is seen", both, deploymentOf(after, {}, 2), [gateway()]],
  ["while former gateways serve", both, deploymentOf(after, { replicas: 2 }), [gateway(), gateway()]],
  ["while it is not known that they do not", both, deploymentOf(after), [gateway(), gateway()]],
  ["while they end", both, deploymentOf(after), [gateway(true)]],
  [
    "while it is not known whether those that come serve",
    both,
    deploymentOf(after, { readyReplicas: 0 }),
    [gateway()],
  ],
])("gateways that have another account keep it %s", (_, roleBinding, deployment, gateways) => {
  expect(formerAccounts(after, { ...NO_CHILDREN, roleBinding, deployment }, gateways)).toEqual(["nat"]);
});

test.each([
  ["are all replaced", both, deploymentOf(after), [gateway()]],
  [
    "have the same one, though they are replaced",
    bindingOf("gateway"),
    deploymentOf(after, { replicas: 2 }),
    [],
  ],
])("none is kept where gateways %s", (_, roleBinding, deployment, gateways) => {
  expect(formerAccounts(after, { ...NO_CHILDREN, roleBinding, deployment }, gateways)).toEqual([]);
});

test("what somebody else has made of the RoleBinding is not kept", () => {
  const { metadata, ...rest } = both;
  const roleBinding = { ...rest, metadata: { ...metadata, managedFields: [] } };
  expect(
    formerAccounts(after, { ...NO_CHILDREN, roleBinding, deployment: deploymentOf(before) }, []),
  ).toEqual([]);
});

test("what is not an account of the Egress's namespace is not kept", () => {
  const { namespace } = before.metadata;
  const subjects = [
    { kind: "Group", name: "system:authenticated", namespace },
    { kind: "ServiceAccount", name: "default", namespace: "elsewhere" },
  ];
  const roleBinding = { ...both, subjects };
  expect(
    formerAccounts(after, { ...NO_CHILDREN, roleBinding, deployment: deploymentOf(before) }, []),
  ).toEqual([]);
});
