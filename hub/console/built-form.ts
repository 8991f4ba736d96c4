/** The layout of the built console's folder, which the build writes and the hub reads. */

/** The document of the console. In each answer with the console's document, the hub replaces `NONCE_MARK` by a new nonce. */
export const INDEX = "index.html";
export const NONCE_MARK = "MUSTER-CONSOLE-NONCE";

/**
 * In the built console: the folder of the files with a hash in their names, and the file with the licences of all packages whose code the console
 * contains.
 */
export const ASSETS = "assets";
export const LICENSES = "licenses.json";

/**
 * The content types of the files of a build, by the ends of their names. The build of the console fails if it produces a file whose extension is not
 * in `CONTENT_TYPES`.
 */
export const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
