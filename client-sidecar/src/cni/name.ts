/** Names as the CNI specification has them: of networks (section 1) and of containers (section 2). */

const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

/** What to say of a text that is none. */
export const NAME_RULE =
  'it must begin with a letter or digit and hold only letters, digits, "_", "." and "-"';

export function isName(text: string): boolean {
  return NAME.test(text);
}
