import { expect, it } from "vitest";
import { z } from "zod";
import { Token } from "../../shared/api/tokens.ts";
import { apiToken } from "../support/api-token.ts";
import { DARK } from "./dark-site.ts";
import { barriers } from "./reader-cases.ts";
import type { Stage } from "./stage.ts";

const TOKEN = /mstr_api_[0-9A-Za-z]{49}/;

export function tokenCases(stage: () => Stage): void {
  const tokenOf = async (name: string) => {
    const page = z.object({ items: z.array(Token) });
    return (await stage().world.rig.api.call(page, "GET", `/api/v1/admin/tokens?name=${name}`)).items[0];
  };

  it("makes a token that is shown once, rotates it, and revokes it", async () => {
    const visit = await stage().operator();
    const { page } = visit;
    await page.getByRole("link", { name: "Tokens" }).click();
    await visit.heading("Make a token").waitFor();
    expect(await barriers(page, "{}")).toEqual([]);
    await page.getByLabel("Name", { exact: true }).fill("rack-planner");
    await page.getByLabel("Role", { exact: true }).selectOption("operator");
    const sites = page.getByLabel("Sites (none: the whole hub)");
    expect(await sites.getByRole("option", { selected: true }).count()).toBe(0);
    await sites.selectOption(DARK.site);
    await page.getByLabel("Days until it expires").fill("30");
    await visit.looksAgain(2);
    const confirm = async (button: string, name: string): Promise<void> => {
      await visit.button(button).click();
      const dialog = page.getByRole("dialog", { name, exact: true });
      expect(await dialog.getByLabel("Reason, for the audit").isVisible()).toBe(false);
      await dialog.getByRole("button").first().click();
      await dialog.waitFor({ state: "hidden" });
    };
    const shown = async (what: string): Promise<string> => {
      const place = page.getByRole("status").filter({ hasText: what });
      await visit.says(place, "it is shown once");
      return TOKEN.exec((await place.textContent()) ?? "")?.[0] ?? "";
    };
    await confirm("make the token", "make the token rack-planner");
    const first = await shown("make the token rack-planner");
    expect(first).toMatch(TOKEN);
    await visit.says(visit.row("API tokens", "rack-planner"), "operator", DARK.site, "valid", "never", "admin");
    expect(await tokenOf("rack-planner")).toMatchObject({
      role: "operator",
      status: "valid",
      last_four: first.slice(-4),
    });

    await confirm("rotate the token rack-planner", "rotate the token rack-planner");
    const second = await shown("rotate the token rack-planner");
    expect(second).not.toBe(first);
    await visit.says(visit.row("API tokens", "rack-planner"), `...${second.slice(-4)}`);
    await visit.act("revoke the token rack-planner", "the planner is gone");
    await visit.says(visit.row("API tokens", "rack-planner"), "revoked");
    expect(await visit.row("API tokens", "rack-planner").getByRole("button").count()).toBe(0);
    await visit.at("#/", "Sites");
    expect(await page.content()).not.toContain(second);
    // The first token is the way into the hub, and the hub rotates it only by its file.
    await visit.at("#/tokens", "API tokens");
    expect(await visit.buttons()).not.toContain("rotate the token admin");
    await page.setViewportSize({ width: 360, height: 700 });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
  });

  it("offers nothing to a reader without the right", async () => {
    const visit = await stage().stranger({ expects: /^403$/ });
    await visit.logIn(await apiToken(stage().world.database, { name: "operator-only", role: "operator" }));
    expect(await visit.page.getByRole("link", { name: "Tokens" }).count()).toBe(0);
    await visit.page.goto(`${visit.url}/#/tokens`);
    await visit.says(visit.page.getByRole("status").filter({ hasText: "manage_people" }), "manage_people");
  });
}
