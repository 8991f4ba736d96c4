/**
 * This program builds the console into the folder that its argument names. A hub that runs from a source checkout, and the script that packages
 * Muster, start the program `build/main.ts` to build the console.
 */
import { buildConsole } from "./build-console.ts";

const [out] = process.argv.slice(2);
if (out === undefined) throw new Error("name the folder into which the console is built");
await buildConsole(out);
