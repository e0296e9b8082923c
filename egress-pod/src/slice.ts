import { isIP, isIPv4, SocketAddress } from "node:net";
import { EgressClientSlice, ObjectMeta } from "@egress-nat/crds";
import type { Logger } from "@egress-nat/program";
import { z } from "zod";

// Entries are parsed one by one: a malformed one must not take the others of its node with it.
const Envelope = z.object({
  metadata: ObjectMeta.pick({
    name: true,
    namespace: true,
    uid: true,
    generation: true,
    resourceVersion: true,
  }),
  nodeName: EgressClientSlice.shape.nodeName,
  clients: z.array(z.unknown()),
});

// Only what is needed here, and cheaper than the schema of the API, whose rules the apiserver has enforced already.
const Entry = z.object({
  uid: z.string(),
  addresses: z.array(
    z.string().refine((text) => isIP(text) !== 0, { error: ({ input }) => `${input} is no address` }),
  ),
  addedAt: z.string().refine((text) => !Number.isNaN(Date.parse(text)), "not a time"),
});

/** What a gateway needs of an EgressClientSlice. Ten thousand clients are kept in this form. */
export interface GatewaySlice {
  readonly metadata: z.infer<typeof Envelope>["metadata"];
  readonly entries: readonly SliceEntry[];
}

/** One client as one node's agent reports it. */
export interface SliceEntry {
  /** Unique among all slices: a node cannot speak for what another one reports. */
  readonly id: string;
  /** In canonical spelling. */
  readonly addresses: readonly string[];
  /** Milliseconds since the epoch, with fractions. */
  readonly addedAtMs: number;
}

/**
 * Parses an EgressClientSlice from the API.
 *
 * @param logger is told, with the slice's name, about malformed entries; they are left out
 * @throws ZodError when it is not an EgressClientSlice
 */
export function parseSlice(raw: unknown, logger: Pick<Logger, "warn">): GatewaySlice {
  const { metadata, nodeName, clients } = Envelope.parse(raw);
  const entries = clients.flatMap((client, index) => {
    const { success, data, error } = Entry.safeParse(client);
    if (success) return [sliceEntry(metadata.uid, data)];
    const reason = z.prettifyError(error);
    logger.warn(
      { slice: metadata.name, node: nodeName, index, reason },
      "client in a slice is malformed, left out",
    );
    return [];
  });
  return { metadata, entries };
}

function sliceEntry(sliceUid: string, { uid, addresses, addedAt }: z.infer<typeof Entry>): SliceEntry {
  return { id: `${sliceUid}/${uid}`, addresses: addresses.map(canonical), addedAtMs: milliseconds(addedAt) };
}

/** The one spelling by which addresses can be compared. */
function canonical(address: string): string {
  return isIPv4(address) ? address : new SocketAddress({ address, family: "ipv6" }).address;
}

/** Date.parse() drops what is finer than a millisecond. */
function milliseconds(time: string): number {
  const finer = /\.\d{3}(\d+)/.exec(time)?.[1];
  return Date.parse(time) + (finer === undefined ? 0 : Number(`0.${finer}`));
}
