/**
 * Where values stand in a JSON text. Configuration of other programs is edited in place, so that whatever is not ours
 * stays as it was, byte for byte: indentation, order, repeated keys and numbers that JavaScript would round.
 */

export interface Span {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/**
 * The elements of an array that is a member of the outermost object.
 *
 * @param text valid JSON, an object
 * @returns undefined where there is no such member, or it is no array; of repeated keys the last one counts, as for JSON.parse
 */
export function arrayElements(text: string, key: string): readonly Span[] | undefined {
  const member = members(text, skipSpace(text, 0)).findLast(({ name }) => name === key);
  return member !== undefined && text[member.value.start] === "["
    ? elements(text, member.value.start)
    : undefined;
}

function members(text: string, open: number): { readonly name: unknown; readonly value: Span }[] {
  const found: { name: unknown; value: Span }[] = [];
  let at = skipSpace(text, open + 1);
  while (at < text.length && text[at] !== "}") {
    const nameEnd = skipValue(text, at);
    const name: unknown = JSON.parse(text.slice(at, nameEnd));
    const colon = skipSpace(text, nameEnd);
    const start = skipSpace(text, colon + 1);
    const end = skipValue(text, start);
    found.push({ name, value: { start, end } });
    at = skipComma(text, end);
  }
  return found;
}

function elements(text: string, open: number): Span[] {
  const found: Span[] = [];
  let at = skipSpace(text, open + 1);
  while (at < text.length && text[at] !== "]") {
    const end = skipValue(text, at);
    found.push({ start: at, end });
    at = skipComma(text, end);
  }
  return found;
}

function skipComma(text: string, from: number): number {
  const at = skipSpace(text, from);
  return text[at] === "," ? skipSpace(text, at + 1) : at;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (" \t\r\n".includes(text[at] ?? "end")) at++;
  return at;
}

function skipValue(text: string, from: number): number {
  const first = text[from];
  if (first === '"') return skipString(text, from);
  if (first === "{" || first === "[") return skipNested(text, from);
  let at = from;
  while (at < text.length && !",]} \t\r\n".includes(text[at] ?? "")) at++;
  return at;
}

function skipString(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

function skipNested(text: string, from: number): number {
  let depth = 0;
  let at = from;
  do {
    const character = text[at];
    if (character === '"') {
      at = skipString(text, at);
      continue;
    }
    if (character === "{" || character === "[") depth++;
    if (character === "}" || character === "]") depth--;
    at++;
  } while (depth > 0 && at < text.length);
  return at;
}
