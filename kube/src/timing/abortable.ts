/** Who waits for which promise. A promise keeps its reactions for as long as it is pending: one of them is for all. */
const waiting = new WeakMap<Promise<unknown>, Set<() => void>>();

/**
 * Waits for something for as long as the signal is not aborted. Nothing is left of it after that, however long the promise
 * is pending.
 *
 * @throws the signal's reason
 */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const outcome = Promise.withResolvers<T>();
  const settle = () => outcome.resolve(promise);
  const abort = () => outcome.reject(signal.reason);
  const waiters = waitersFor(promise);
  waiters.add(settle);
  signal.addEventListener("abort", abort);
  try {
    return await outcome.promise;
  } finally {
    waiters.delete(settle);
    signal.removeEventListener("abort", abort);
  }
}

function waitersFor(promise: Promise<unknown>): Set<() => void> {
  const known = waiting.get(promise);
  if (known !== undefined) return known;
  const waiters = new Set<() => void>();
  waiting.set(promise, waiters);
  const settle = () => {
    waiting.delete(promise);
    for (const tell of waiters) tell();
  };
  promise.then(settle, settle);
  return waiters;
}
