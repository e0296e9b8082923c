/** How often nftables was changed by one program; the kernel counts all changes, whoever made them. */
export interface TransactionCounts {
  /** Without those that have failed. */
  readonly begun: number;
  readonly succeeded: number;
}

/** Counts a program's own transactions. */
export class OwnTransactions implements TransactionCounts {
  #begun = 0;
  #succeeded = 0;

  get begun(): number {
    return this.#begun;
  }

  get succeeded(): number {
    return this.#succeeded;
  }

  /** Does what takes `count` transactions. */
  async during<T>(count: number, work: () => Promise<T>): Promise<T> {
    this.#begun += count;
    try {
      const result = await work();
      this.#succeeded += count;
      return result;
    } catch (error) {
      this.#begun -= count;
      throw error;
    }
  }
}
