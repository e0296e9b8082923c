import type { TransactionCounts, TransactionMonitor } from "../backend.ts";

export const NFT_MONITOR: TransactionMonitor = {
  file: "nft",
  args: ["monitor"],
  // nft's src/monitor.c (netlink_events_newgen_cb). The process that it names has another number in a container.
  end: /^# new generation /,
  // nft's src/mnl.c (mnl_nft_event_listener): it was slower than the kernel, which drops all that comes until nft has read
  // what is left, and does not say so again.
  lost: /^# ERROR: We lost /,
};

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
