/** How many files run at the same time: as many as the machine has processors. */
export const SLOTS = 2;

const FOLDER = "/slots";

/** Script for the machine: makes a mount namespace with a /run of its own for each slot. */
export const MAKE_SLOTS = `
  mkdir ${FOLDER}
  mount -t tmpfs slots ${FOLDER}
  mount --make-private ${FOLDER}
  for slot in $(seq ${SLOTS}); do
    touch ${FOLDER}/$slot
    unshare --mount=${FOLDER}/$slot mount -t tmpfs run /run
  done`;

/** The command that runs another in the slot of the calling test file. */
export function insideSlot(command: string | readonly string[]): readonly string[] {
  const slot = process.env.VITEST_POOL_ID ?? "1";
  const args = typeof command === "string" ? ["bash", "-c", command] : command;
  return ["nsenter", `--mount=${FOLDER}/${slot}`, "--", ...args];
}
