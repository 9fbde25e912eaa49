/** Removes the escape sequences of terminals (ECMA-48) from the output of commands. */

/**
 * In this order: a control string, which ends in its line with BEL or ST; a control sequence, which may be cut off at
 * its end; any other escape sequence. Adjacent classes have no character in common, and no class contains ESC. So each
 * character is read a fixed number of times, whatever a command writes.
 */
const ESCAPE_SEQUENCE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the sequences begin and end with control characters.
  /\u001b[\]PX^_][^\u0007\r\n\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)|(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]?|\u001b[!-/]*[0-~]?/g;

/**
 * The text without escape sequences: colours, cursor movements, titles and links. The text of a link remains. In linear
 * time, in contrast to `stripVTControlCharacters` of Node 20, which is quadratic for text such as ESC and many `;#`.
 */
export function withoutEscapeSequences(text: string): string {
  return text.replace(ESCAPE_SEQUENCE, '');
}
