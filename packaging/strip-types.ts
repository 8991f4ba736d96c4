import { stripTypeScriptTypes } from "node:module";
import ts from "typescript";

/** The name of a source file after the build has stripped its types: `agent/main.ts` becomes `agent/main.js` in a package. */
export const strippedName = (file: string): string => file.replace(/[.]ts$/, ".js");

/**
 * Strips the TypeScript types from a source file once, at build time. Without the build's stripping, Node.js would strip the types at each start, and
 * the compiler of Node.js would stay in the memory of each process. Blanks replace the types, and an import's extension keeps its length, so a stack
 * trace shows the source's lines and columns.
 */
export function stripTypes(source: string): string {
  const script = stripTypeScriptTypes(source);
  let renamed = "";
  let done = 0;
  // `stripTypes` turns relative imports of `.ts` files into imports of `.js` files. Imports of npm packages and of Node's own modules keep their
  // names.
  for (const { fileName, pos } of ts.preProcessFile(script).importedFiles) {
    if (!fileName.startsWith(".")) continue;
    const quote = pos + 1;
    renamed += script.slice(done, quote) + strippedName(fileName);
    done = quote + fileName.length;
  }
  return renamed + script.slice(done);
}
