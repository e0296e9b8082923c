import { createHash } from "node:crypto";

/** Far more than gateways of a node's clients: what is beyond comes from those that are long gone. */
const MOST_REMEMBERED = 10_000;

/**
 * Eight hexadecimal digits for a short text, where a name has to be shorter. All clients of a node ask for the same ones,
 * and many times each when a gateway ends.
 */
export const shortDigest = remembering((text) => createHash("sha256").update(text).digest("hex").slice(0, 8));

/** @param answer depends on the question alone */
export function remembering(answer: (question: string) => string): (question: string) => string {
  const answers = new Map<string, string>();
  return (question) => {
    const known = answers.get(question);
    if (known !== undefined) return known;
    if (answers.size >= MOST_REMEMBERED) answers.clear();
    const given = answer(question);
    answers.set(question, given);
    return given;
  };
}
