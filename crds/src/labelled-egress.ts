import { EGRESS_LABEL } from "./names.ts";

/** Any object of the API, as far as it says whose it is. */
interface Labelled {
  readonly metadata?:
    | {
        readonly namespace?: string | undefined;
        readonly labels?: Readonly<Record<string, string>> | undefined;
      }
    | undefined;
}

/**
 * The key of the Egress that an object belongs to, by its label: the name itself, because an Egress's name is never longer
 * than a label may be.
 *
 * @returns "namespace/name", or nothing: what an index takes
 */
export function egressKeys({ metadata }: Labelled): readonly string[] {
  const name = metadata?.labels?.[EGRESS_LABEL];
  return name === undefined ? [] : [`${metadata?.namespace}/${name}`];
}
