/** Says on stderr what a benchmark is at, with the seconds since the command began. */
export function progress(step: string): void {
  console.error(`${(performance.now() / 1000).toFixed(0).padStart(5)} s  ${step}`);
}
