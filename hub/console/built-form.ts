/** The layout of the built console's folder, which the build writes and the hub reads. */

/** The document of the console. In each answer with the console's document, the hub replaces `NONCE_MARK` by a new nonce. */
export const INDEX = "index.html";
export const NONCE_MARK = "MUSTER-CONSOLE-NONCE";

/** The folder of the files with a hash in their names, and the file with the licences of all packages whose code the build contains. */
export const ASSETS = "assets";
export const LICENSES = "licenses.json";

/** The content types of the files of a build, by the ends of their names. A build of the console that contains a file with any other extension fails. */
export const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
