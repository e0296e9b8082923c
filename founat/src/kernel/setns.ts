import { arch } from "node:os";

/** Numbers of setns(2), by Node's names of processors. */
const NUMBERS: Readonly<Record<string, number>> = { x64: 308, arm64: 268 };

/** The number of setns(2) on this machine: Perl has no name for it. */
export const SETNS = String(NUMBERS[arch()]);
