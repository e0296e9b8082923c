import { EgressClientSlice, SLICE_RESOURCE } from "@egress-nat/crds";
import {
  createTransport,
  type KubeObject,
  loadCredentials,
  POD_RESOURCE,
  ResourceClient,
} from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { TOOLBOX_IMAGE } from "@egress-nat/tools/images";
import { sliceObject } from "../clients/slices.ts";
import { inParallel } from "../in-parallel.ts";

// Runs in the network namespace of a cluster: `node crowd.ts KUBECONFIG slices|pods COUNT` makes that many objects.
// kubectl would take minutes: it makes one after another.

const CLIENTS_PER_SLICE = 100;
const PARALLEL = 16;

const [kubeconfig, kind, count] = process.argv.slice(2);
const logger = createLogger({ name: "crowd", level: "warn" });
const transport = createTransport({ credentials: await loadCredentials({ kubeconfig }), logger });
const slices = new ResourceClient(transport, SLICE_RESOURCE, (raw) => EgressClientSlice.parse(raw));
const pods = new ResourceClient(transport, POD_RESOURCE, (raw) => raw as KubeObject & { spec: unknown });

const create = {
  slices: (index: number) => slices.create(newSlice(index)),
  pods: (index: number) => pods.create(strandedPod(index)),
};

const indexes = Array.from({ length: Number(count) }, (_, index) => index);
await inParallel<number>(PARALLEL, indexes, create[kind as keyof typeof create]);
transport.close();

/** A slice without what only the apiserver may say of it. */
function newSlice(index: number) {
  const { metadata, nodeName, clients } = sliceObject(index, CLIENTS_PER_SLICE);
  const { namespace, name, labels } = metadata;
  return { metadata: { namespace, name, labels }, nodeName, clients };
}

/** A pod that no scheduler feels responsible for: an object and nothing more. */
function strandedPod(index: number) {
  return {
    metadata: { namespace: "default", name: `stranded-${index}` },
    spec: { schedulerName: "none", containers: [{ name: "main", image: TOOLBOX_IMAGE }] },
  };
}
