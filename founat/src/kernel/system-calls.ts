import { arch } from "node:os";

/** By Node's names of processors: Perl has no names for system calls. */
const NUMBERS: Readonly<Record<string, { readonly setns: number; readonly memfdCreate: number }>> = {
  x64: { setns: 308, memfdCreate: 319 },
  arm64: { setns: 268, memfdCreate: 279 },
};

/** The number of setns(2) on this machine. */
export const SETNS = `${NUMBERS[arch()]?.setns}`;

/** The number of memfd_create(2) on this machine. */
export const MEMFD_CREATE = `${NUMBERS[arch()]?.memfdCreate}`;
