import { vi } from "vitest";

/** Vitest gives up after a second; a busy machine takes longer to answer sixteen requests. */
const TIMEOUT_MS = 20_000;

const { waitFor, waitUntil } = vi;

/** Of each test that does not say how long it waits. */
const patient = (options: Parameters<typeof waitFor>[1]) => ({
  timeout: TIMEOUT_MS,
  ...(typeof options === "number" ? { timeout: options } : options),
});

vi.waitFor = (callback, options) => waitFor(callback, patient(options));
vi.waitUntil = (callback, options) => waitUntil(callback, patient(options));
