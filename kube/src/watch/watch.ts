import { z } from "zod";
import { refusalError, retryableError } from "../error.ts";
import { tryParseJson } from "../transport/json.ts";
import { lines } from "./lines.ts";
import type { CollectionRequest } from "./list.ts";

/** The first line of defence against servers and proxies that forget to close: ask the apiserver to end the watch. */
const WATCH_SECONDS = { min: 300, max: 600 };

/** @see https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches */
const METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

export interface WatchRequest extends CollectionRequest {
  readonly resourceVersion: string;
  readonly idleTimeoutMs: number;
}

export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly object: unknown;
}

const Line = z.discriminatedUnion("type", [
  z.object({ type: z.enum(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]), object: z.unknown() }),
  z.object({ type: z.literal("ERROR"), object: z.looseObject({ code: z.number().default(500) }) }),
]);

/**
 * Begins to watch what happens in a collection after a moment.
 *
 * @returns the events, until the apiserver ends the watch (which is no error)
 * @throws KubeError, and so does the loop over the events; code Gone where history does not reach back that far
 * @see https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
 */
export async function watchObjects(request: WatchRequest): Promise<AsyncIterable<WatchEvent>> {
  const { transport, path, query, metadataOnly, resourceVersion, idleTimeoutMs, signal } = request;
  const { min, max } = WATCH_SECONDS;
  const stream = await transport.stream({
    path,
    query: {
      ...query,
      watch: true,
      allowWatchBookmarks: true,
      resourceVersion,
      // Drawn, so that the watches of all programs do not end together.
      timeoutSeconds: Math.round(min + Math.random() * (max - min)),
    },
    accept: metadataOnly ? METADATA_ONLY : undefined,
    signal,
    idleTimeoutMs,
    // The next one may find another apiserver behind a load balancer, and no connection that is half dead.
    isLastOfConnection: true,
  });
  return eventsIn(stream, `watch of ${path}`);
}

async function* eventsIn(
  stream: AsyncIterable<Buffer>,
  request: string,
): AsyncGenerator<WatchEvent, void, undefined> {
  for await (const text of lines(stream)) {
    const line = Line.safeParse(tryParseJson(text));
    if (!line.success) {
      const message = `${request}: not a watch event: ${JSON.stringify(text.slice(0, 200))}`;
      throw retryableError("InvalidResponse", message, line.error);
    }
    const { type, object } = line.data;
    if (type === "ERROR") throw refusalError({ request, status: object.code, body: object });
    yield { type, object };
  }
}
