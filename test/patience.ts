import { vi } from "vitest";

/** Vitest gives up after a second; a busy machine takes longer to answer sixteen requests. */
const TIMEOUT_MS = 20_000;

const { waitFor } = vi;

/** Of each test that does not say how long it waits. */
vi.waitFor = (callback, options) =>
  waitFor(callback, {
    timeout: TIMEOUT_MS,
    ...(typeof options === "number" ? { timeout: options } : options),
  });
