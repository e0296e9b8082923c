import fc from "fast-check";
import { settingsFrom } from "../e2e/kit/settings.ts";

const { long } = settingsFrom(process.env);

const CASES = long ? 100_000 : 2_000;

/** For a decoder that is a process for each case. */
export const PROCESS_CASES = long ? 10_000 : 200;

/** For tests whose decoder is a server: 100,000 connections take minutes. */
export const FUZZ_TIMEOUT_MS = 900_000;

/** One change of some bytes: others in the place of `deleted` of them, somewhere. */
const change = fc.record({
  at: fc.nat(),
  deleted: fc.nat({ max: 8 }),
  inserted: fc.uint8Array({ maxLength: 8 }),
});

/**
 * Bytes as they may come from a socket: noise, and what a decoder knows with bytes changed, taken out or put in, so that
 * it gets past the first look.
 *
 * @param known what the decoder takes
 */
function hostileBytes(known: readonly Uint8Array[]): fc.Arbitrary<Uint8Array> {
  const changed = fc
    .tuple(fc.constantFrom(...known), fc.array(change, { minLength: 1, maxLength: 6 }))
    .map(([whole, changes]) => {
      let bytes = Buffer.from(whole);
      for (const { at, deleted, inserted } of changes) {
        const from = at % (bytes.length + 1);
        bytes = Buffer.concat([bytes.subarray(0, from), inserted, bytes.subarray(from + deleted)]);
      }
      return new Uint8Array(bytes);
    });
  return fc.oneof(
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 2_000 }) },
    { weight: 4, arbitrary: changed },
  );
}

/**
 * Gives a decoder hostile bytes: by default 2,000 cases in `npm test`, 100,000 at night. What fails is printed as small as it can
 * be, with its seed.
 *
 * @param known messages that the decoder takes; most cases are changes of these
 * @param decode throws when the decoder does what it must not
 * @param numRuns how many cases
 */
export async function fuzzBytes(
  known: readonly Uint8Array[],
  decode: (bytes: Uint8Array) => void | Promise<void>,
  numRuns = CASES,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(hostileBytes(known), async (bytes) => decode(bytes)),
    { numRuns },
  );
}
