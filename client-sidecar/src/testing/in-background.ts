/** Runs something that ends when its signal is aborted. @returns ends it, and waits for its end */
export function runInBackground(program: { run(signal: AbortSignal): Promise<void> }): () => Promise<void> {
  const stop = new AbortController();
  const ended = program.run(stop.signal);
  return () => {
    stop.abort();
    return ended;
  };
}
