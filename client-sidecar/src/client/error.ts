/** Why a pod is not made a client, or is not the client that it should be. */

/** By reason, whether it may be otherwise later without a change of the pod. */
const RETRYABLE = {
  "annotation-malformed": false,
  "is-gateway": false,
  "no-address": false,
  "too-many-addresses": false,
  "address-mapped": false,
  "uid-unusual": false,
  "no-common-family": false,
  "attached-already": false,
  "address-held": true,
  "egress-missing": true,
  "egress-not-understood": true,
  "namespace-not-allowed": true,
  "no-gateway": true,
  "not-acknowledged": true,
  "no-egress-in-namespace": true,
  "deleted-meanwhile": true,
  differs: true,
} as const satisfies Readonly<Record<string, boolean>>;

export type RefusalReason = keyof typeof RETRYABLE;

export interface Refusal {
  readonly reason: RefusalReason;
  /** What is wrong, with which object. */
  readonly message: string;
  /** The likely cause, and what to do. */
  readonly remedy?: string;
}

/** Looks at one thing. @returns what is wrong with it */
export type Check<Input> = (input: Input) => Refusal | undefined;

/** A refusal, on its way to who asked. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  readonly code: RefusalReason;
  readonly retryable: boolean;
  readonly remedy: string | undefined;

  constructor({ reason, message, remedy }: Refusal) {
    super(message);
    this.code = reason;
    this.retryable = RETRYABLE[reason];
    this.remedy = remedy;
  }
}

/** @throws ClientError what the first check finds that finds anything */
export function assertPasses<Input>(checks: readonly Check<Input>[], input: Input): void {
  for (const check of checks) {
    const refusal = check(input);
    if (refusal !== undefined) throw new ClientError(refusal);
  }
}
