/** The arguments with which nft tells of changes as they are made. Each line is one. */
export const MONITOR = ["monitor"] as const;

/** nft's src/monitor.c (netlink_events_newgen_cb). The process that it names has another number in a container. */
export const END_OF_TRANSACTION = /^# new generation /;
/**
 * nft's src/mnl.c (mnl_nft_event_listener): it was slower than the kernel, which drops all that comes until nft has read
 * what is left, and does not say so again.
 */
export const LOST = /^# ERROR: We lost /;
