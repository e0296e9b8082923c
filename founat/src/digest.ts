import { createHash } from "node:crypto";

/** Of one question. Clients of a node have the same gateways and rules, so that far fewer are asked for. */
const MOST_ANSWERS = 10_000;

/**
 * Eight hexadecimal digits for a text, where a name has to be short. All clients of a node ask for the same ones, and
 * many times each when a gateway ends.
 */
export const shortDigest = remembering((text) => createHash("sha256").update(text).digest("hex").slice(0, 8));

/** @param answer depends on the question alone */
export function remembering(answer: (question: string) => string): (question: string) => string {
  const answers = new Map<string, string>();
  return (question) => {
    const known = answers.get(question);
    if (known !== undefined) return known;
    if (answers.size >= MOST_ANSWERS) answers.clear();
    const given = answer(question);
    answers.set(question, given);
    return given;
  };
}
