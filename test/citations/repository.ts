import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { citationOffences, decisionOffences, linkOffences, type Offence, type Text } from "./citations.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CODE = "{agent,hub,shared,cloud-init,packaging,test}/**/*.{ts,mjs,js,sh,css,md,service,env}";
const GENERATED = /(^|[/])(node_modules|[.]muster)[/]|^hub[/]db[/]migrations[/]/;

export function repositoryTexts(): readonly Text[] {
  const exclude = (path: string): boolean => GENERATED.test(`${path}/`);
  const paths = globSync(["*.md", "docs/**/*.md", ".ci/*", CODE], { cwd: ROOT, exclude });
  return paths.map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
}

const isThere = (path: string): boolean =>
  path.includes("*") ? globSync(path, { cwd: ROOT }).length > 0 : existsSync(join(ROOT, path));

export function repositoryOffences(texts: readonly Text[]): Offence[] {
  return [...citationOffences(texts), ...linkOffences(texts, isThere), ...decisionOffences(texts)];
}
