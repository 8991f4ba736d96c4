/** The program `muster`, with which operators call a hub. */
import { mkdirSync, statSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

/**
 * Node.js keeps the compiled code of the program in a folder of this user, which halves the time of the next starts. The program does not use a folder
 * in which another user could have put code.
 */
function keepCompiledCode(): void {
  const { HOME, XDG_CACHE_HOME, NODE_COMPILE_CACHE, NODE_DISABLE_COMPILE_CACHE } = process.env;
  if (NODE_COMPILE_CACHE !== undefined || NODE_DISABLE_COMPILE_CACHE !== undefined) return;
  const folder = join(XDG_CACHE_HOME || join(HOME || homedir(), ".cache"), "muster", "compiled");
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { uid, mode } = statSync(folder);
    if (uid === process.getuid?.() && (mode & 0o022) === 0) enableCompileCache(folder);
  } catch {
    // Without a folder for compiled code, for example on a read-only disk, the program only starts more slowly.
  }
}

/** The exit status that a shell reports for a program that the signal SIGPIPE ended. */
const ENDED_BY_SIGPIPE = 141;
// The reader of the output may end early, as in `muster list-nodes | head`. Node.js ignores SIGPIPE, so the program ends itself when a write to the
// closed output fails.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: Error & { readonly code?: string }) => {
    if (error.code === "EPIPE") process.exit(ENDED_BY_SIGPIPE);
    throw error;
  });

keepCompiledCode();
// The code of the program is loaded after the cache of compiled code is in use.
const [{ run }, { processIo }] = await Promise.all([import("./run.ts"), import("./io.ts")]);
process.exitCode = await run(process.argv.slice(2), processIo());
