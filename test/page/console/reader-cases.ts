import { expect, it } from "vitest";
import { barriers } from "../barriers.ts";
import type { ConsoleStage } from "./console-stage.ts";
import { SHOWN } from "./screens.ts";

export function consoleReaderCases(stage: () => ConsoleStage): void {
  it.each([
    ["light", "{}"],
    ["dark", '{ runOnly: ["color-contrast"] }'],
  ] as const)("has no accessibility problem that axe finds, in %s colours", async (colorScheme, rules) => {
    const stranger = await stage().stranger("/", { colorScheme });
    await stranger.page.getByLabel("Token").waitFor();
    expect(await barriers(stranger.page, rules), "the sign-in").toEqual([]);
    const visit = await stage().operator("/", { colorScheme });
    for (const { name, path, ready } of SHOWN) {
      await visit.page.goto(`${visit.url}/console${path}`);
      await ready(visit);
      expect(await barriers(visit.page, rules), name).toEqual([]);
    }
    await visit.page.keyboard.press("Control+k");
    await visit.page.getByRole("dialog").getByRole("option").first().waitFor();
    expect(await barriers(visit.page, rules), "the palette").toEqual([]);
    await visit.page.keyboard.press("Escape");
    await visit.page.getByRole("button", { name: "Menu of admin" }).click();
    await visit.page.getByRole("menuitem", { name: "Sign out", exact: true }).waitFor();
    expect(await barriers(visit.page, rules), "the menu").toEqual([]);
    const page = await visit.page.evaluate("getComputedStyle(document.body).backgroundColor");
    expect(page).toBe(colorScheme === "light" ? "rgb(246, 247, 249)" : "rgb(22, 25, 31)");
  });

  it("leads to a description of the API for people, where they try an operation", async () => {
    const visit = await stage().operator("/");
    await visit.page.getByRole("button", { name: "Menu of admin" }).click();
    await visit.page.getByRole("menuitem", { name: "API", exact: true }).click();
    await visit.heading("onboardings").waitFor();
    const list = visit.page
      .locator("details", { hasText: /^GET/ })
      .filter({ has: visit.page.getByText("/api/v1/admin/nodes", { exact: true }) });
    await list.locator("summary").click();
    await list.getByLabel("hostname (query)").fill("c000u00001");
    await list.getByRole("button", { name: "Send", exact: true }).click();
    await list.getByText('"hostname": "c000u00001"').waitFor();
    expect(await barriers(visit.page, "{}")).toEqual([]);
    expect(await visit.page.evaluate("document.documentElement.scrollWidth")).toBe(1280);
  });

  it("fits a window of 360 pixels without horizontal scrolling, and has its navigation there", async () => {
    const visit = await stage().operator("/", { viewport: { width: 360, height: 700 } });
    const { page } = visit;
    for (const { name, path, ready } of SHOWN) {
      await page.goto(`${visit.url}/console${path}`);
      await ready(visit);
      expect(await page.evaluate("document.documentElement.scrollWidth"), name).toBe(360);
    }
    await page.getByRole("button", { name: "Open the navigation" }).click();
    await page.getByRole("dialog").getByRole("link", { name: "Overview" }).click();
    await visit.heading("Overview").waitFor();
    await page.getByRole("dialog").waitFor({ state: "hidden" });
  });

  it("asks nothing in a tab without events, whatever timers do", async () => {
    const visit = await stage().operator("/");
    const { page } = visit;
    for (const { name, path, ready } of SHOWN) {
      await page.clock.install();
      await page.goto(`${visit.url}/console${path}`);
      await ready(visit);
      await page.getByText("live", { exact: true }).waitFor({ state: "attached" });
      const asked: string[] = [];
      page.on("request", (request) => asked.push(request.url()));
      // The event stream counts as lost after a silence of 40 s, so the test lets less time pass.
      await page.clock.runFor(30_000);
      expect(asked, name).toEqual([]);
      page.removeAllListeners("request");
    }
  });
}
