/**
 * Replaces control characters in a text for the terminal. An answer of the hub may quote text of a host or an operator, and such text must not
 * control the terminal.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
export const plain = (value: string): string => value.replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, "?");
