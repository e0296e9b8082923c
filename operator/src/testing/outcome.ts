/** What the operator has made of a namespace, without what the API server assigns: outcomes of two can be compared. */

import { EGRESS_RESOURCE, type Egress } from "@egress-nat/crds";
import { CHILD_RESOURCES, type ChildKind } from "../egress/children/index.ts";
import type { Anything, Playground } from "./cluster.ts";

/** A child that somebody else has a claim on, and that is left alone. */
interface Foreigner {
  readonly child: ChildKind;
  readonly object: Anything;
}

export interface Outcome {
  /** By "egress NAME": the status of an Egress that speaks of its present spec, else undefined. */
  readonly statuses: Readonly<Record<string, object | undefined>>;
  /** By "deployment NAME" and so on. */
  readonly children: Readonly<Record<string, object | "foreign" | "garbage">>;
  readonly foreigners: readonly Foreigner[];
}

const OURS = /^(app\.kubernetes\.io|coil\.cybozu\.com)\//;

/** Differ by the Egress's UID and namespace; that they are right shows in what is written next: nothing. */
const DIGEST = /^coil\.cybozu\.com\/[a-z]+-digest$/;

export async function outcomeOf(play: Playground): Promise<Outcome> {
  const egresses = new Map<string, Egress>();
  for (const egress of await play.list(EGRESS_RESOURCE)) egresses.set(egress.metadata.name, egress);
  const services = new Map<string, Anything>();
  const children: Record<string, object | "foreign" | "garbage"> = {};
  const foreigners: Foreigner[] = [];
  for (const child of Object.keys(CHILD_RESOURCES) as ChildKind[]) {
    for (const object of await play.list(CHILD_RESOURCES[child])) {
      const { name } = object.metadata;
      const egress = egresses.get(name);
      const holder = holderOf(object, egress);
      children[`${child} ${name}`] = holder === "egress" ? anonymous(object, play.namespace) : holder;
      if (holder === "foreign") foreigners.push({ child, object: portable(object) });
      if (holder === "egress" && child === "service") services.set(name, object);
    }
  }
  const statuses = [...egresses.values()].map((egress) => [
    `egress ${egress.metadata.name}`,
    statusOf(egress, services.get(egress.metadata.name)),
  ]);
  return { statuses: Object.fromEntries(statuses), children, foreigners };
}

/** Deletes what belongs to Egresses that are gone: this API server has no garbage collector. */
export async function collectGarbage(play: Playground): Promise<void> {
  const alive = new Set((await play.list(EGRESS_RESOURCE)).map(({ metadata }) => metadata.uid));
  for (const resource of Object.values(CHILD_RESOURCES)) {
    for (const object of await play.list(resource)) {
      const owner = controllerOf(object);
      if (owner?.kind !== EGRESS_RESOURCE.kind || alive.has(owner.uid)) continue;
      await play.delete(resource, object.metadata.name);
    }
  }
}

function holderOf(object: Anything, egress: Egress | undefined): "egress" | "foreign" | "garbage" {
  const owner = controllerOf(object);
  if (owner?.kind !== EGRESS_RESOURCE.kind) return "foreign";
  return owner.uid === egress?.metadata.uid ? "egress" : "garbage";
}

function controllerOf({ metadata }: Anything): Anything {
  return metadata.ownerReferences?.find(({ controller }: Anything) => controller);
}

/** The same, as if it could be in any namespace. */
function anonymous(object: Anything, namespace: string): object {
  const { labels = {}, annotations = {}, ownerReferences } = object.metadata;
  const { status: _, ...rest } = portable(object);
  const text = JSON.stringify({
    ...rest,
    metadata: {
      labels: ours(labels),
      annotations: Object.fromEntries(
        Object.entries(ours(annotations)).map(([name, value]) => [name, DIGEST.test(name) ? "there" : value]),
      ),
      ownerReferences: ownerReferences.map(({ uid: _uid, ...reference }: Anything) => reference),
    },
  });
  return JSON.parse(text.replaceAll(namespace, "NAMESPACE"));
}

/** What one would have to write to get such an object elsewhere. */
function portable({ metadata, ...rest }: Anything): Anything {
  const { name, labels } = metadata;
  const { clusterIP: _ip, clusterIPs: _ips, ...spec } = rest.spec ?? {};
  const ports = spec.ports?.map(({ nodePort: _port, ...port }: Anything) => port);
  return {
    ...rest,
    metadata: { name, labels },
    ...(rest.spec && { spec: { ...spec, ...(ports && { ports }) } }),
  };
}

function ours(entries: Readonly<Record<string, string>>): object {
  return Object.fromEntries(Object.entries(entries).filter(([name]) => OURS.test(name)));
}

function statusOf({ metadata, status }: Egress, service: Anything): object | undefined {
  if (status?.observedGeneration !== metadata.generation) return undefined;
  const { conditions = [], serviceIPs = [], serviceUID, observedGeneration: _, ...rest } = status;
  return {
    ...rest,
    conditions: conditions.map(({ type, status, reason }) => `${type}: ${status} ${reason}`),
    isServiceRight: serviceUID === service?.metadata.uid,
    areServiceIPsRight: JSON.stringify(serviceIPs) === JSON.stringify(service?.spec.clusterIPs ?? []),
  };
}
