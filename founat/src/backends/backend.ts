import type { Changes } from "../difference.ts";
import type { PeerChanges, Peers } from "../gateway/peers.ts";
import type { GatewayPolicy } from "../gateway/policy.ts";
import type { Step } from "../kernel/step.ts";

/**
 * The packet filter of one gateway: it spells the policy and the clients for the kernel, and reads them back.
 *
 * All throw FounatError `kernel-command-failed`, and `unexpected-output` where they read.
 */
export interface Backend {
  /** How often it has changed the kernel: what is beyond that is of somebody else. */
  readonly transactions: TransactionCounts;
  /** Whether the kernel holds any of it, or what a program left that was killed: one question, which is cheap. */
  exists(): Promise<boolean>;
  /** @param options.elements false leaves out which clients the filter knows, of which there are many, and addresses */
  read(options: { readonly elements: boolean }): Promise<FilterState>;
  /** Runs steps, if there are any, those that change the filter among them. */
  run(steps: readonly Step[]): Promise<void>;
  /** What gives the filter other clients: steps that may run at the same time. */
  peerSteps(changes: PeerChanges): readonly Step[];
  /** Packets by the reason for which they were dropped, since the filter was made. */
  drops(): Promise<ReadonlyMap<string, number>>;
}

/** What the kernel holds of a packet filter. */
export interface FilterState {
  /** Whether it holds any of it. */
  readonly exists: boolean;
  /** Whether it can carry flows past the rules once they were let through. */
  readonly fastPath: boolean;
  /** The clients that it knows. */
  readonly peers: () => Peers;
  /**
   * What makes it that of a policy; clients stay, and so does what was not read. It may have to ask the kernel.
   *
   * @param links by name, because a filter may hang on some: those that are there, and those that are deleted or recreated by then
   * @param newcomers clients that it lacks, and has from its first packet on
   */
  readonly changes: (
    policy: GatewayPolicy,
    links: Readonly<Record<"present" | "replaced", ReadonlySet<string>>>,
    newcomers: Peers,
  ) => Promise<Changes>;
  /** What takes it away, clients and all. */
  readonly removal: readonly Step[];
  /** What makes its clients `peers`, one by one: each may have been changed by itself. */
  readonly peerDifferences: (peers: Peers) => PeerDifferences;
}

export interface PeerDifferences extends Changes {
  /** Addresses of nobody that the kernel takes for a client's. */
  readonly strangers: readonly string[];
}

/** How often a packet filter was changed by one program. */
export interface TransactionCounts {
  /** What tells of all changes, whoever makes them; absent: nothing does. */
  readonly monitor?: TransactionMonitor;
  /** Without those that have failed. */
  readonly begun: number;
  readonly succeeded: number;
}

/** A program that prints a line for each change as it is made. */
export interface TransactionMonitor {
  readonly file: string;
  readonly args: readonly string[];
  /** The line that ends a transaction. */
  readonly end: RegExp;
  /** The line that says that some were missed. */
  readonly lost: RegExp;
}
