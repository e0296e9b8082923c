import { hasCode } from "../error.ts";
import { takenOver } from "../objects/managed-fields.ts";
import { type KubeObject, type Resource, resourcePath } from "../objects/resource.ts";
import type { RequestOptions, Transport } from "../transport/transport.ts";
import { type ListResult, listObjects } from "../watch/list.ts";

export interface ObjectReference {
  readonly namespace?: string | undefined;
  readonly name: string;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface SubresourceOptions extends CallOptions {
  /** The part of the object to change, such as "status"; the object itself if it is absent. */
  readonly subresource?: string | undefined;
}

export interface ListOptions extends CallOptions {
  /** All namespaces if it is absent. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface DeleteOptions extends CallOptions {
  /** Refuse with Conflict where the object is not, or no longer, this one. */
  readonly preconditions?:
    | { readonly uid?: string; readonly resourceVersion?: string | undefined }
    | undefined;
}

export interface FieldManagerOptions extends CallOptions {
  /** Who owns the fields that are applied, and loses those that are no longer. */
  readonly fieldManager: string;
}

export interface ApplyOptions extends FieldManagerOptions, SubresourceOptions {
  /** Take fields that belong to other managers, as a controller that has the last word does. */
  readonly force?: boolean | undefined;
}

/** No object has it: the first that etcd ever stores gets revision 2. */
const VERSION_OF_NONE = "1";

/** What a caller wants of an object: all that it has a say in, and no more. */
export type Desired<T extends KubeObject> = { readonly [K in keyof T]?: unknown } & {
  readonly metadata: ObjectReference & { readonly resourceVersion?: string | undefined };
};

/**
 * Reads and writes the objects of one resource. Each method throws KubeError.
 *
 * @typeParam T what `parse` makes of an object that the apiserver sent
 */
export class ResourceClient<T extends KubeObject> {
  readonly #transport: Transport;
  readonly #resource: Resource;
  readonly #parse: (raw: unknown) => T;

  constructor(transport: Transport, resource: Resource, parse: (raw: unknown) => T) {
    this.#transport = transport;
    this.#resource = resource;
    this.#parse = parse;
  }

  get(reference: ObjectReference, options: CallOptions = {}): Promise<T> {
    return this.#object({ method: "GET", path: this.#path(reference), ...options });
  }

  list(options: ListOptions = {}): Promise<ListResult<T>> {
    const { namespace, labelSelector, fieldSelector, signal } = options;
    return listObjects({
      transport: this.#transport,
      path: resourcePath(this.#resource, { namespace }),
      query: { labelSelector, fieldSelector },
      convert: this.#parse,
      signal,
    });
  }

  create(object: Desired<T>, options: CallOptions = {}): Promise<T> {
    const path = resourcePath(this.#resource, { namespace: object.metadata.namespace });
    return this.#object({ method: "POST", path, body: this.#typed(object), ...options });
  }

  /** Whether the API server would make an object like this where none of its name is. Nothing is written. */
  async isAcceptable(object: Desired<T>, { signal }: CallOptions = {}): Promise<boolean> {
    const path = resourcePath(this.#resource, { namespace: object.metadata.namespace });
    const body = this.#typed(object);
    try {
      await this.#transport.request({ method: "POST", path, query: { dryRun: "All" }, body, signal });
    } catch (error) {
      if (hasCode(error, "Invalid")) return false;
      // Whether the name is taken is asked last.
      if (!hasCode(error, "AlreadyExists")) throw error;
    }
    return true;
  }

  /** @param patch a JSON merge patch (RFC 7386): null removes */
  patch(reference: ObjectReference, patch: object, options: SubresourceOptions = {}): Promise<T> {
    const { subresource, signal } = options;
    return this.#object({
      method: "PATCH",
      path: this.#path(reference, subresource),
      contentType: "application/merge-patch+json",
      body: patch,
      signal,
    });
  }

  /** Deletes an object, or begins to, where finalizers or children hold it. One that is gone already is NotFound. */
  async delete(reference: ObjectReference, options: DeleteOptions = {}): Promise<void> {
    const { preconditions, signal } = options;
    await this.#transport.request({
      method: "DELETE",
      path: this.#path(reference),
      body: { apiVersion: "v1", kind: "DeleteOptions", preconditions },
      signal,
    });
  }

  /**
   * Server-side apply: creates the object, or changes in it what differs; with a resourceVersion in it, only where the
   * object is of that version (else Conflict).
   *
   * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/
   */
  apply(object: Desired<T>, options: ApplyOptions): Promise<T> {
    const { fieldManager, force, subresource, signal } = options;
    return this.#object({
      method: "PATCH",
      path: this.#path(object.metadata, subresource),
      // Else the body is parsed a second time, for warnings that nobody reads; what the schema lacks is refused anyway.
      query: { fieldManager, force, fieldValidation: "Ignore" },
      // JSON is YAML.
      contentType: "application/apply-patch+yaml",
      body: this.#typed(object),
      signal,
    });
  }

  /**
   * Server-side apply that creates the object, and does nothing where there is one of that name: Conflict. Unlike one made
   * by {@link create}, what is applied later takes away fields of it that are no longer wanted.
   */
  createByApply(object: Desired<T>, options: FieldManagerOptions): Promise<T> {
    const metadata = { ...object.metadata, resourceVersion: VERSION_OF_NONE };
    return this.apply({ ...object, metadata }, options);
  }

  /**
   * Takes all fields of an object, but its metadata, from other managers: the next apply removes what it does not name.
   *
   * Apply by itself, forced or not, lets fields alone that it does not name, and they may contradict it: a disruption
   * budget cannot have minAvailable and maxUnavailable, a Service no two ports of one name.
   *
   * @param reference with the version of the object that was looked at
   * @returns the object then; undefined where there was nothing to take
   * @throws KubeError Conflict where it is not that version any more
   */
  async takeOver(
    { resourceVersion, ...reference }: ObjectReference & { readonly resourceVersion: string },
    options: FieldManagerOptions,
  ): Promise<T | undefined> {
    const { fieldManager, signal } = options;
    const path = this.#path(reference);
    const { metadata } = await this.#transport.request<KubeObject>({ method: "GET", path, signal });
    const managedFields = takenOver(metadata.managedFields, fieldManager);
    if (managedFields === undefined) return undefined;
    return this.patch(reference, { metadata: { resourceVersion, managedFields } }, { signal });
  }

  #path(reference: ObjectReference, subresource?: string): string {
    const { namespace, name } = reference;
    return resourcePath(this.#resource, { namespace, name, subresource });
  }

  #typed(object: Desired<T>): object {
    return { apiVersion: this.#resource.apiVersion, kind: this.#resource.kind, ...object };
  }

  async #object(request: RequestOptions): Promise<T> {
    return this.#parse(await this.#transport.request<unknown>(request));
  }
}
