/** This program writes the API's types for the console, from docs/openapi.json. The types are not committed, because one command makes them. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const DESCRIPTION = new URL("../../../docs/openapi.json", import.meta.url);
const FOLDER = new URL("../../../.muster/console/", import.meta.url);
const TYPES = new URL("openapi.d.ts", FOLDER);

const types = astToString(await openapiTS(DESCRIPTION));
await mkdir(FOLDER, { recursive: true });
// A file that is as before keeps its time, so that the compiler does not check everything again.
if ((await readFile(TYPES, "utf8").catch(() => "")) !== types) await writeFile(TYPES, types);
