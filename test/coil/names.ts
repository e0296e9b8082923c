/** Name of the cluster on which coil's end-to-end suite runs. */
export const COIL = "coil";

/** What the suite calls the nodes of its kind cluster. */
export const NODE_NAMES: Readonly<Record<string, string>> = {
  node1: "coil-control-plane",
  node2: "coil-worker",
  node3: "coil-worker2",
};
