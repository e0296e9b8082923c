import { createHash } from "node:crypto";

/** Far more than gateways of a node's clients: what is beyond comes from those that are long gone. */
export const MOST_GATEWAYS = 10_000;

/**
 * Eight hexadecimal digits for a short text, where a name has to be shorter. All clients of a node ask for the same ones,
 * and many times each when a gateway ends.
 */
export const shortDigest = remembering(
  (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 8),
  { keyOf: String, most: MOST_GATEWAYS },
);

interface MemoryOptions<Question> {
  /** What tells questions with other answers apart. */
  readonly keyOf: (question: Question) => string;
  /** How many answers are kept. */
  readonly most: number;
}

/** @param answer depends on the question alone */
export function remembering<Question, Answer>(
  answer: (question: Question) => Answer,
  { keyOf, most }: MemoryOptions<Question>,
): (question: Question) => Answer {
  const answers = new Map<string, Answer>();
  return (question) => {
    const key = keyOf(question);
    const known = answers.get(key);
    if (known !== undefined) return known;
    if (answers.size >= most) answers.clear();
    const given = answer(question);
    answers.set(key, given);
    return given;
  };
}
