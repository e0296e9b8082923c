/**
 * Joins a caller's signal and a time limit into one signal, and lets go of both when closed.
 *
 * AbortSignal.any keeps its sources' entries for as long as they live; a program's signal lives as long as the
 * program, and sees every request it makes.
 */
export class Deadline implements Disposable {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #endsAt: number;
  #expired = false;

  constructor(timeoutMs: number, caller: AbortSignal | undefined) {
    this.#caller = caller;
    this.#endsAt = performance.now() + timeoutMs;
    this.#timer = setTimeout(() => {
      this.#expired = true;
      this.#controller.abort();
    }, timeoutMs);
    if (caller?.aborted) this.#abort();
    else caller?.addEventListener("abort", this.#abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether time, and not the caller, ended it. */
  get expired(): boolean {
    return this.#expired;
  }

  get remainingMs(): number {
    return this.#endsAt - performance.now();
  }

  /** Lifts the time limit; the caller's signal still counts. */
  lift(): void {
    clearTimeout(this.#timer);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this.#abort);
  }

  readonly #abort = (): void => this.#controller.abort(this.#caller?.reason);
}
