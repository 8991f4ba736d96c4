/**
 * `npm run openapi` runs this program, which writes the API description to docs/openapi.json, so that a review shows the effect of a changed route.
 */
import { writeFileSync } from "node:fs";
import { openApiDocument } from "./openapi.ts";
import { ROUTES } from "./routes/index.ts";

writeFileSync(
  new URL("../../docs/openapi.json", import.meta.url),
  `${JSON.stringify(openApiDocument(ROUTES), null, 2)}\n`,
);
