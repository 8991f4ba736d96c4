import { stripTypeScriptTypes } from "node:module";
import ts from "typescript";

/** `agent/main.ts` is `agent/main.js` in a package. */
export const strippedName = (file: string): string => file.replace(/[.]ts$/, ".js");

/**
 * The JavaScript that Node.js would make of a source file at each start, made once: what makes it would stay in the memory of every process. Types
 * become blanks and an import's extension keeps its length, so a stack trace names the source's own lines and columns.
 */
export function stripTypes(source: string): string {
  const script = stripTypeScriptTypes(source);
  let renamed = "";
  let done = 0;
  // In a package lies a `.js` wherever the repository has a `.ts`; npm packages and Node's own modules keep their names.
  for (const { fileName, pos } of ts.preProcessFile(script).importedFiles) {
    if (!fileName.startsWith(".")) continue;
    const quote = pos + 1;
    renamed += script.slice(done, quote) + strippedName(fileName);
    done = quote + fileName.length;
  }
  return renamed + script.slice(done);
}
