import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { z } from "zod";
import { APPROVAL_STATES } from "../../shared/api/approvals.ts";
import { ROUTES } from "../http/routes/index.ts";

const scriptOf = (file: string): string => readFileSync(new URL(file, import.meta.url), "utf8");
const page = scriptOf("./page-approvals.js");
/** The lines of one of the script's tables. */
const tableOf = (script: string, name: string, line: RegExp): Record<string, string> => {
  const [, text = ""] = new RegExp(`const ${name}(?:: [^=]+)? = \\{([^]*?)\\n\\};`).exec(script) ?? [];
  return Object.fromEntries([...text.matchAll(line)].map(([, key = "", value = ""]) => [key, value]));
};

const Versioned = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.object({ parameters: z.array(z.object({ name: z.string() })) }))),
});

it.each([
  ["page", page, "CARRIED_OUT"],
  ["console", scriptOf("../console/app/verbs/carry-out.ts"), "PATHS"],
])("the %s carries out every approved request whose operation is POST and takes no If-Match", (_, script, table) => {
  const openapi = JSON.parse(readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8"));
  const { paths } = Versioned.parse(openapi);
  const posts = ROUTES.filter(({ secondPerson, method }) => secondPerson !== undefined && method === "POST");
  expect(posts.length).toBeGreaterThan(5);
  const takesVersion = (path: string) => paths[path]?.["post"]?.parameters.some(({ name }) => name === "If-Match");
  expect(tableOf(script, table, /(\w+): "([^"]+)"/g)).toEqual(
    Object.fromEntries(posts.filter(({ path }) => !takesVersion(path)).map((route) => [route.operationId, route.path])),
  );
});

it("the page knows the colour of each state of an approval", () => {
  expect(Object.keys(tableOf(page, "APPROVAL_STATES", /(\w+): "(\w+)"/g)).toSorted()).toEqual(
    APPROVAL_STATES.toSorted(),
  );
});
