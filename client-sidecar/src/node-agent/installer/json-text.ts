/**
 * Where values stand in a JSON text. Configuration of other programs is edited in place, so that whatever is not ours
 * stays as it was, byte for byte: indentation, order, repeated keys and numbers that JavaScript would round.
 */

import { parseTree } from "jsonc-parser";

export interface Span {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/**
 * The elements of an array that is a member of the outermost object.
 *
 * @param text valid JSON, an object with this member
 * @returns of repeated keys those of the last one, as for JSON.parse
 */
export function arrayElements(text: string, key: string): readonly Span[] {
  const member = parseTree(text)?.children?.findLast(({ children: [name] = [] }) => name?.value === key);
  const elements = member?.children?.[1]?.children ?? [];
  return elements.map(({ offset, length }) => ({ start: offset, end: offset + length }));
}
