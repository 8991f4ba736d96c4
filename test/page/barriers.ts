import axe from "axe-core";
import type { Page } from "playwright-core";
import { z } from "zod";

const Found = z.object({
  violations: z.array(z.object({ id: z.string(), nodes: z.array(z.object({ html: z.string() })) })),
});

/** The faults of accessibility that axe finds on a page, by axe's own options `rules`. */
export async function barriers(page: Page, rules: string): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = Found.parse(await page.evaluate(`axe.run({ resultTypes: ["violations"], ...${rules} })`));
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`));
}
