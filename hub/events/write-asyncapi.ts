/**
 * `npm run asyncapi` runs this program, which writes the description of the events to docs/asyncapi.json, and the table of events into
 * docs/events.md.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { asyncApiDocument, eventTable } from "./asyncapi.ts";

writeFileSync(new URL("../../docs/asyncapi.json", import.meta.url), `${JSON.stringify(asyncApiDocument(), null, 2)}\n`);
const guide = new URL("../../docs/events.md", import.meta.url);
const text = readFileSync(guide, "utf8");
writeFileSync(
  guide,
  text.replace(/(?<=<!-- events -->\n).*?(?=<!-- \/events -->)/s, () => `${eventTable()}\n`),
);
