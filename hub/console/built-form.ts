/** The form of a built console, which its build writes and the hub reads. */

/** The document of the console. The hub sends a new nonce in place of `NONCE_MARK` in each answer. */
export const INDEX = "index.html";
export const NONCE_MARK = "MUSTER-CONSOLE-NONCE";

/** The folder of the files with a hash in their names, and the file with the licences of all packages whose code the build contains. */
export const ASSETS = "assets";
export const LICENSES = "licenses.json";

/** The content types of the files of a build, by the ends of their names. A build with another kind of file fails. */
export const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
