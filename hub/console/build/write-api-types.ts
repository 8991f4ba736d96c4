/**
 * This program writes the API's types for the console, from docs/openapi.json. The generated API types are not committed to Git, because one command
 * generates them again.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const DESCRIPTION = new URL("../../../docs/openapi.json", import.meta.url);
const FOLDER = new URL("../../../.muster/console/", import.meta.url);
const TYPES = new URL("openapi.d.ts", FOLDER);

const types = astToString(await openapiTS(DESCRIPTION));
await mkdir(FOLDER, { recursive: true });
// An unchanged types file is not rewritten, so its modification time stays and the TypeScript compiler need not check everything again.
if ((await readFile(TYPES, "utf8").catch(() => "")) !== types) await writeFile(TYPES, types);
