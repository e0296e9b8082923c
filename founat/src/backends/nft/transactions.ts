import type { TransactionCounts } from "../backend.ts";
import { NFT_MONITOR } from "./monitor.ts";

/** Counts a program's own transactions. */
export class OwnTransactions implements TransactionCounts {
  readonly monitor = NFT_MONITOR;
  begun = 0;
  succeeded = 0;

  /** Does what takes `count` transactions. */
  async during<T>(count: number, work: () => Promise<T>): Promise<T> {
    this.begun += count;
    try {
      const result = await work();
      this.succeeded += count;
      return result;
    } catch (error) {
      this.begun -= count;
      throw error;
    }
  }
}
