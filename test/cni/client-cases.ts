/**
 * What libcni is answered for a pod that is a client of an Egress: a fake agent says what the real one would.
 * client-sidecar/src/libcni.test.ts holds each row against the plugin.
 */

import type { Answer, Expected } from "./cases/index.ts";
import type { RuntimeCommand } from "./scenario.ts";

export interface ClientCase {
  readonly command: RuntimeCommand;
  readonly title: string;
  /** Of the specification. */
  readonly section: string;
  readonly expected: Expected;
  readonly answer: Answer;
  readonly reason?: string;
  /** The agent's answer: "yes", an error code, or none because it is not there. */
  readonly agent: "yes" | "absent" | number;
  /** Containers that are clients already. */
  readonly clients: readonly string[];
  /** The network namespace is gone by then. */
  readonly netnsGone?: true;
  /** A file is where the folder of the node's state should be. */
  readonly stateUnreadable?: true;
  /** Containers whose clients the plugin ends by itself: their records are gone afterwards, and those of others stay. */
  readonly ends?: readonly string[];
  /** What the agent hears. */
  readonly asks: readonly string[];
}

/** The container that ADD, CHECK and DEL name, and those that GC keeps. */
export const CLIENT = "c0ffee";
const RECORD = `${CLIENT}:lo:pods`;

export const CLIENT_CASES: readonly ClientCase[] = [
  {
    ...{ command: "ADD", title: "the agent sets it up", section: "2 ADD" },
    ...{ expected: "succeeds", answer: "succeeds", agent: "yes", clients: [], asks: ["add"] },
  },
  {
    ...{ command: "ADD", title: "the agent says to try again", section: "5 Error" },
    ...{ expected: "code 11", answer: "code 11", agent: 11, clients: [], asks: ["add"] },
  },
  {
    ...{ command: "ADD", title: "the agent is not there", section: "5 Error" },
    ...{ expected: "code 11", answer: "code 11", agent: "absent", clients: [], asks: [] },
  },
  {
    ...{ command: "ADD", title: "it is attached already", section: "2 ADD" },
    ...{ expected: "fails", answer: "code 4", agent: "yes", clients: [CLIENT], asks: [] },
  },
  {
    ...{ command: "CHECK", title: "all is as it should be", section: "2 CHECK" },
    ...{ expected: "succeeds", answer: "succeeds", agent: "yes", clients: [CLIENT] },
    asks: [`check ${RECORD}`],
  },
  {
    ...{ command: "CHECK", title: "the agent finds a difference", section: "2 CHECK" },
    ...{ expected: "fails", answer: "code 101", agent: 101, clients: [CLIENT] },
    asks: [`check ${RECORD}`],
  },
  {
    ...{ command: "CHECK", title: "it asks for an Egress, and is no client", section: "2 CHECK" },
    ...{ expected: "fails", answer: "code 101", agent: "yes", clients: [], asks: [] },
  },
  {
    ...{ command: "CHECK", title: "the agent is not there", section: "2 CHECK" },
    ...{ expected: "fails", answer: "code 11", agent: "absent", clients: [CLIENT], asks: [] },
  },
  {
    ...{ command: "DEL", title: "the agent ends it", section: "2 DEL" },
    ...{ expected: "succeeds", answer: "succeeds", agent: "yes", clients: [CLIENT, "other"] },
    asks: [`delete ${RECORD}`],
  },
  {
    ...{ command: "DEL", title: "its network namespace is gone", section: "2 DEL", netnsGone: true },
    ...{ expected: "succeeds", answer: "succeeds", agent: "yes", clients: [CLIENT] },
    asks: [`delete ${RECORD}`],
  },
  {
    ...{ command: "DEL", title: "it is no client any more", section: "2 DEL" },
    ...{ expected: "succeeds", answer: "succeeds", agent: "yes", clients: ["other"], asks: [] },
  },
  {
    ...{ command: "DEL", title: "the agent is not there", section: "2 DEL" },
    ...{ expected: "succeeds", answer: "succeeds", agent: "absent", clients: [CLIENT, "other"] },
    ...{ asks: [], ends: [CLIENT] },
  },
  {
    ...{ command: "GC", title: "one client is valid, one is not", section: "2 GC" },
    ...{ expected: "succeeds", answer: "succeeds", agent: "yes", clients: [CLIENT, "stale"] },
    asks: ["delete stale:lo:pods"],
  },
  {
    ...{ command: "GC", title: "the agent is not there", section: "2 GC" },
    ...{ expected: "succeeds", answer: "succeeds", agent: "absent", clients: [CLIENT, "stale"] },
    ...{ asks: [], ends: ["stale"] },
  },
  {
    ...{ command: "STATUS", title: "the agent is there", section: "2 STATUS" },
    ...{ expected: "succeeds", answer: "succeeds", agent: "yes", clients: [], asks: [] },
  },
  {
    ...{ command: "STATUS", title: "the agent is not there", section: "2 STATUS" },
    ...{ expected: "code 50", answer: "succeeds", agent: "absent", clients: [], asks: [] },
    reason: "the node would not be ready, and hold up pods that need no agent, the agent's own too",
  },
  {
    ...{ command: "STATUS", title: "the node's state cannot be read", section: "2 STATUS" },
    ...{ expected: "code 50", answer: "code 50", agent: "yes", clients: [], asks: [] },
    stateUnreadable: true,
  },
];
