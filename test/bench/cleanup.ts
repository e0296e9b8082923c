import { ToolError } from "@egress-nat/tools/system/tool-error";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Those whose blocks have not ended, in the order in which they were made. */
const due: Cleanup[] = [];

/** Takes away what a block has made when that block ends (`await using`), or when a signal ends {@link interruptible} work. */
export class Cleanup implements AsyncDisposable {
  readonly #takeAway: () => Promise<unknown>;

  constructor(takeAway: () => Promise<unknown>) {
    this.#takeAway = takeAway;
    due.push(this);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const index = due.indexOf(this);
    if (index === -1) return;
    due.splice(index, 1);
    await this.#takeAway();
  }
}

/**
 * Does the work of a command.
 *
 * @throws ToolError `interrupted` after SIGINT or SIGTERM, when all {@link Cleanup} is done, the latest first; work may go on;
 * where some of it fails, what the last of these throws
 */
export async function interruptible<T>(work: () => Promise<T>): Promise<T> {
  const interruption = Promise.withResolvers<never>();
  const interrupt = (signal: NodeJS.Signals) =>
    interruption.reject(new ToolError("interrupted", `ended by ${signal}`));
  // Until the process ends: a Ctrl-C arrives twice, from the terminal and from npm.
  for (const signal of SIGNALS) process.on(signal, interrupt);
  try {
    return await Promise.race([work(), interruption.promise]);
  } finally {
    await takeAllAway();
  }
}

/** The latest first; one that fails keeps none of the others from it. */
async function takeAllAway(): Promise<void> {
  const latest = due.at(-1);
  if (latest === undefined) return;
  try {
    await latest[Symbol.asyncDispose]();
  } finally {
    await takeAllAway();
  }
}
