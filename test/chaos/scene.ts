import type { ClusterNode } from "../bed/cluster/node.ts";
import type { Expected } from "./expected.ts";
import type { Ground } from "./ground.ts";
import type { RunningPod } from "./pods.ts";

/** One round of a scenario. */
export interface Scene {
  readonly ground: Ground;
  /** The gateway on the node without clients: what is done to one gateway or one node is done to it. */
  readonly victim: RunningPod;
  /** Its node. */
  readonly node: ClusterNode;
  /** Has the clients note the time. It is called once, right before the first thing that may be felt. */
  readonly mark: () => Promise<void>;
  /** Reports how many of a number of things are wrong: none may be. */
  readonly count: (what: string, count: number, of: number) => void;
}

export interface Scenario {
  /** What is done, for people. */
  readonly summary: string;
  readonly act: (scene: Scene) => Promise<void>;
  /** For how long clients go on after it, in milliseconds. */
  readonly lastsMs: number;
  /** Takes back what was done, after the clients have ended. */
  readonly undo?: (scene: Scene) => Promise<void>;
  /** With Agent selection. */
  readonly expected: Expected;
}
