import axe from "axe-core";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { z } from "zod";
import { DARK } from "./dark-site.ts";
import { LIVE } from "./page-world.ts";
import type { Stage } from "./stage.ts";
import type { Visit } from "./visit.ts";

const Found = z.object({
  violations: z.array(z.object({ id: z.string(), nodes: z.array(z.object({ html: z.string() })) })),
});

export async function barriers(page: Page, rules: string): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = Found.parse(await page.evaluate(`axe.run({ resultTypes: ["violations"], ...${rules} })`));
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`));
}

/** One example of each kind of view of the operators' page. */
const VIEWS: readonly { name: string; open: (visit: Visit) => Promise<void> }[] = [
  { name: "the overview", open: (visit) => visit.at("#/", "Sites") },
  { name: "a node", open: (visit) => follow(visit, "Nodes", DARK.mended, `Node ${DARK.mended}`) },
  {
    name: "an onboarding that failed",
    open: (visit) => follow(visit, "Onboardings that need a person", LIVE.refused, `Onboarding of ${LIVE.refused}`),
  },
  { name: "a batch", open: (visit) => follow(visit, "Newest batches", "needs a person", "What failed") },
  { name: "the hub's keys", open: (visit) => visit.at("#/authority", "The hub's keys") },
  { name: "the approvals", open: (visit) => visit.at("#/approvals", "Requests that need a second person") },
  { name: "a list", open: (visit) => visit.at("#/list/nodes?status=offline", "Nodes, status offline") },
];

async function follow(visit: Visit, section: string, row: string, heading: string): Promise<void> {
  await visit.at("#/", "Sites");
  await visit.row(section, row).getByRole("link").click();
  await visit.heading(heading).waitFor();
}

export function readerCases(stage: () => Stage): void {
  it.each([
    ["light", "{}"],
    ["dark", '{ runOnly: ["color-contrast"] }'],
  ] as const)("has no accessibility problem that axe finds, in %s colours", async (colorScheme, rules) => {
    const visit = await stage().stranger({ colorScheme });
    expect(await barriers(visit.page, rules)).toEqual([]);
    await visit.logIn(stage().world.tokens.admin);
    for (const { name, open } of VIEWS) {
      await open(visit);
      expect(await barriers(visit.page, rules), name).toEqual([]);
    }
    await visit.at("#/", "Sites");
    await visit.button(`acknowledge ${DARK.gone}`).click();
    expect(await barriers(visit.page, rules), "the dialogue").toEqual([]);
    const colours = await visit.page.evaluate("getComputedStyle(document.documentElement).backgroundColor");
    expect(colours).toBe(colorScheme === "light" ? "rgb(255, 255, 255)" : "rgb(18, 20, 23)");
  });

  it("fits a window of 360 pixels without horizontal scrolling", async () => {
    const visit = await stage().stranger({ viewport: { width: 360, height: 700 } });
    const width = () => visit.page.evaluate("document.documentElement.scrollWidth");
    expect(await width()).toBe(360);
    await visit.logIn(stage().world.tokens.admin);
    for (const { name, open } of VIEWS) {
      await open(visit);
      expect(await width(), name).toBe(360);
      const aside =
        "[...document.querySelectorAll('section')].filter((one) => one.scrollWidth > one.clientWidth).length";
      expect(await visit.page.evaluate(aside), `${name}: sections that are scrolled aside`).toBe(0);
    }
    await visit.at("#/", "Sites");
    await visit.button(`acknowledge ${DARK.gone}`).click();
    const box = await visit.page.getByRole("dialog").boundingBox();
    expect((box?.x ?? -1) >= 0 && (box?.x ?? 0) + (box?.width ?? 360) <= 360).toBe(true);
  });

  it("can be used with the keyboard alone", async () => {
    const visit = await stage().stranger();
    const { page } = visit;
    const { keyboard } = page;
    await keyboard.type(stage().world.tokens.admin);
    await keyboard.press("Enter");
    await visit.heading("Sites").waitFor();
    const tabTo = async (name: string): Promise<void> => {
      for (let presses = 0; presses < 80; presses += 1) {
        await keyboard.press("Tab");
        const at = "document.activeElement.ariaLabel ?? document.activeElement.textContent";
        if ((await page.evaluate(at)) === name) return;
      }
      throw new Error(`the keyboard does not come to ${name}`);
    };
    await tabTo(LIVE.refused);
    expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
    await keyboard.press("Enter");
    await visit.heading(`Onboarding of ${LIVE.refused}`).waitFor();
    await tabTo(`rerun ${LIVE.refused}`);
    await keyboard.press("Enter");
    const reason = page.getByRole("dialog", { name: `rerun ${LIVE.refused}` }).getByLabel("Reason, for the audit");
    await reason.waitFor();
    await keyboard.press("Enter");
    expect(await page.getByRole("dialog").count(), "nothing is done without a reason").toBe(1);
    await keyboard.type("half a reason");
    expect(await reason.inputValue()).toBe("half a reason");
    await keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    expect(await page.evaluate("document.activeElement.ariaLabel")).toBe(`rerun ${LIVE.refused}`);
    expect(visit.written).toEqual([]);
  });

  it("shows a description of the API for people", async () => {
    const visit = await stage().stranger();
    await visit.page.getByRole("link", { name: "API" }).click();
    await visit.heading("onboardings").waitFor();
    expect(await visit.page.evaluate("document.documentElement.scrollWidth")).toBe(1280);
  });
}
