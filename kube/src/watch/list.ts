import { z } from "zod";
import { hasCode, retryableError } from "../error.ts";
import { parseJson } from "../transport/json.ts";
import type { Query, Transport } from "../transport/transport.ts";
import { ListScanner } from "./list-scanner.ts";

/** As client-go's pager: small enough for the apiserver to answer at once, large enough to be few. */
const PAGE_SIZE = 500;

const IDLE_TIMEOUT_MS = 30_000;

/** @see https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches */
const METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

const Envelope = z.object({
  metadata: z.object({ resourceVersion: z.string(), continue: z.string().optional() }),
});

/** What is asked of a collection, by list or by watch. */
export interface CollectionRequest {
  readonly transport: Transport;
  /** URL path of the collection. */
  readonly path: string;
  readonly query?: Query;
  /** Asks for the metadata of the objects alone. */
  readonly metadataOnly?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ListRequest<T> extends CollectionRequest {
  /** Makes of each object what is to be kept of it; undefined leaves it out. */
  readonly convert: (raw: unknown) => T | undefined;
}

export interface ListResult<T> {
  readonly items: T[];
  /** The moment of the whole list; a watch may go on from it. */
  readonly resourceVersion: string;
}

/**
 * Lists a collection in pages, and converts each object while the page still arrives: what `convert` leaves out is
 * never in memory together.
 *
 * The list is a consistent one, from no cache that lags behind: a program that starts must not see what was deleted.
 *
 * @see https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
 */
export async function listObjects<T>(request: ListRequest<T>): Promise<ListResult<T>> {
  try {
    return await listInPages(request, PAGE_SIZE);
  } catch (error) {
    // The apiserver has forgotten the state that the pages are of: then all of it in one answer, as client-go does.
    if (!hasCode(error, "Gone")) throw error;
    return await listInPages(request, undefined);
  }
}

/**
 * Asks which moment a collection is at.
 *
 * @param request without labels to select by: it would cost as many objects as have to be looked at until one has them
 */
export async function presentVersion(request: CollectionRequest): Promise<string> {
  const { transport, path, query, signal } = request;
  const answer = await transport.request({
    method: "GET",
    path,
    // Without a resourceVersion the answer is of this moment, from no cache that lags behind.
    query: { ...query, limit: 1 },
    accept: METADATA_ONLY,
    signal,
  });
  return Envelope.parse(answer).metadata.resourceVersion;
}

async function listInPages<T>(request: ListRequest<T>, limit: number | undefined): Promise<ListResult<T>> {
  const { transport, path, query, metadataOnly, convert, signal } = request;
  const complaint = () => `GET ${path}: the answer is not a list, or was cut off`;
  const items: T[] = [];
  let token: string | undefined;
  while (true) {
    const stream = await transport.stream({
      path,
      query: { ...query, limit, continue: token },
      accept: metadataOnly ? METADATA_ONLY : undefined,
      signal,
      idleTimeoutMs: IDLE_TIMEOUT_MS,
    });
    const scanner = new ListScanner();
    for await (const chunk of stream) {
      for (const text of scanner.push(chunk)) {
        const item = convert(parseJson(text, complaint));
        if (item !== undefined) items.push(item);
      }
    }
    const envelope = Envelope.safeParse(parseJson(scanner.envelope(), complaint));
    if (!envelope.success) throw retryableError("InvalidResponse", complaint(), envelope.error);
    const { metadata } = envelope.data;
    if (!metadata.continue) return { items, resourceVersion: metadata.resourceVersion };
    token = metadata.continue;
  }
}
