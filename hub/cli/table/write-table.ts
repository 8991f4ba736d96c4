/** `npm run openapi` runs this program, which writes the operations of docs/openapi.json as the table that ships with the program `muster`. */
import { readFileSync, writeFileSync } from "node:fs";
import { operationsOf } from "../description.ts";
import { TABLE } from "./shipped.ts";

const document: unknown = JSON.parse(readFileSync(new URL("../../../docs/openapi.json", import.meta.url), "utf8"));
// Each operation gets a line of its own in `operations.json`, so that a code review shows which operations changed.
writeFileSync(
  TABLE,
  `[\n${operationsOf(document)
    .map((one) => JSON.stringify(one))
    .join(",\n")}\n]\n`,
);
