/** `npm run openapi`: writes the API's description to docs/openapi.json, where reviews see what a change of a route means. */
import { writeFileSync } from "node:fs";
import { openApiDocument } from "./openapi.ts";
import { ROUTES } from "./routes/index.ts";

writeFileSync(
  new URL("../../docs/openapi.json", import.meta.url),
  `${JSON.stringify(openApiDocument(ROUTES), null, 2)}\n`,
);
