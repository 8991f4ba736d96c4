/**
 * The error for a file of request headers for the trace collector that has an invalid line. The message of a HeaderLinesError holds no value of a
 * header, because a value may be a token.
 */
class HeaderLinesError extends Error {
  override readonly name = "HeaderLinesError";
}

const LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e]*?)[ \t]*$/;

/** Parses lines such as `authorization: Bearer TOKEN`. `parseHeaders` ignores empty lines and lines that begin with #. */
export function parseHeaders(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const [, name, value] = LINE.exec(line) ?? [];
    if (name === undefined || value === undefined)
      throw new HeaderLinesError(`Line ${index + 1} of the file of headers is not of the form "name: value".`);
    headers[name.toLowerCase()] = value;
  }
  return headers;
}
