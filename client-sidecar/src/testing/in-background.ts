/** Runs what runs until it is told to stop. @returns stops it, and waits until it has ended */
export function runInBackground(program: { run(signal: AbortSignal): Promise<void> }): () => Promise<void> {
  const stop = new AbortController();
  const ended = program.run(stop.signal);
  return () => {
    stop.abort();
    return ended;
  };
}
