import { canonicalAddress } from "@egress-nat/addresses";
import { CLIENT_UID, EgressClientSlice, isApiAddress, ObjectHead, SliceClient } from "@egress-nat/crds";
import type { Logger } from "@egress-nat/program";
import { z } from "zod";

// Entries are checked one by one: a malformed one must not take the others of its node with it.
const Envelope = z.object({
  metadata: ObjectHead,
  nodeName: EgressClientSlice.shape.nodeName,
  clients: z.custom<readonly unknown[]>(Array.isArray, "expected array"),
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
  /** Of the pod. */
  readonly namespace: string;
  /** In canonical spelling. */
  readonly addresses: readonly string[];
  /** RFC 3339, as the agent wrote it: hardly anybody ever asks. */
  readonly addedAt: string;
}

/**
 * Parses an EgressClientSlice from the API.
 *
 * @param logger is told, with the slice's name, about malformed entries; they are left out
 * @throws ZodError when it is not an EgressClientSlice
 */
export function parseSlice(raw: unknown, logger: Pick<Logger, "warn">): GatewaySlice {
  const { metadata, nodeName, clients } = Envelope.parse(raw);
  const entries: SliceEntry[] = [];
  clients.forEach((client, index) => {
    if (isEntry(client)) {
      const { uid, namespace, addedAt } = client;
      const addresses = client.addresses.map((address) => canonicalAddress(address) ?? address);
      entries.push({ id: `${metadata.uid}/${uid}`, namespace, addresses, addedAt });
      return;
    }
    const { error } = SliceClient.safeParse(client);
    const reason = error ? z.prettifyError(error) : "addresses: 0.0.0.0 and :: are not addresses of a host";
    logger.warn(
      { slice: metadata.name, node: nodeName, index, reason },
      "a client in a slice is malformed, ignoring it",
    );
  });
  return { metadata, entries };
}

/** In any spelling; the kernel's sets take no address of zeros (ipset(8)), which the API does not refuse. */
function isHost(address: string): boolean {
  return isApiAddress(address) && !/^[0:.]+$/.test(address);
}

/**
 * Whether it holds what is needed here, as the schema of the API has it; the apiserver has enforced that. Of a start
 * with ten thousand clients, zod would take longer for this than all the rest does.
 */
function isEntry(
  client: unknown,
): client is Pick<SliceClient, "uid" | "namespace" | "addresses" | "addedAt"> {
  const { uid, namespace, addresses, addedAt } = Object(client) as Partial<
    Record<keyof SliceClient, unknown>
  >;
  return (
    typeof uid === "string" &&
    CLIENT_UID.test(uid) &&
    typeof namespace === "string" &&
    typeof addedAt === "string" &&
    Array.isArray(addresses) &&
    addresses.length > 0 &&
    addresses.every((address) => typeof address === "string" && isHost(address))
  );
}
