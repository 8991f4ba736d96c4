import { expect, it } from "vitest";
import { type ConsoleStage, NODES } from "./console-stage.ts";

const query = (url: string): string => new URL(url).search;

export function consoleNodeListCases(stage: () => ConsoleStage): void {
  it("has the filter in the address, and shows the same after a reload and on the way back", async () => {
    const visit = await stage().operator("/");
    const { page } = visit;
    await page
      .getByRole("link", { name: /offline/ })
      .first()
      .click();
    await page.getByText("6 nodes", { exact: true }).waitFor();
    expect(query(page.url())).toBe("?status=offline");
    await page.getByRole("button", { name: "Status, 1 chosen" }).click();
    const menu = page.getByRole("dialog", { name: "Status, 1 chosen" });
    await menu.getByRole("checkbox", { name: "quarantined" }).check();
    await page.keyboard.press("Escape");
    await page.getByText("12 nodes", { exact: true }).waitFor();
    expect(query(page.url())).toBe("?status=offline,quarantined");
    await page.getByRole("columnheader", { name: "Host" }).getByRole("button").click();
    await page.getByRole("row").nth(1).filter({ hasText: "c005u00202" }).waitFor();
    expect(query(page.url())).toBe("?status=offline,quarantined&sort=-hostname");
    await page.reload();
    await page.getByRole("row").nth(1).filter({ hasText: "c005u00202" }).waitFor();
    await page.getByText("12 nodes", { exact: true }).waitFor();
    await page.goBack();
    await visit.heading("Overview").waitFor();
  });

  it("says which of the three reasons an empty list has", async () => {
    const visit = await stage().operator("/nodes?search=nothing-like-it");
    await visit.page.getByText('Nothing matches "nothing-like-it"').waitFor();
    await visit.page.goto(`${visit.url}/console/nodes?status=draining`);
    await visit.page.getByText("The filter leaves out all nodes").waitFor();
    await visit.page.getByRole("button", { name: "Clear all" }).click();
    await visit.page.getByText(`${NODES} nodes`, { exact: true }).waitFor();
  });

  it("loads only the pages to which a person scrolls, and draws only the rows in sight", async () => {
    const visit = await stage().operator("/nodes");
    const { page } = visit;
    await page.getByRole("row", { name: /c000u00001/ }).waitFor();
    expect(await page.getByRole("row").count()).toBeLessThan(80);
    await page.getByRole("region", { name: "Nodes", exact: true }).focus();
    await page.keyboard.press("End");
    await page.keyboard.press("End");
    const last = page.getByRole("row", { name: /c006u00240/ });
    while ((await last.count()) === 0) await page.keyboard.press("End");
    expect(await page.getByRole("row").count()).toBeLessThan(80);
  });

  it("saves a view under a name and opens it again", async () => {
    const visit = await stage().operator("/nodes?status=offline&sort=-hostname");
    const { page } = visit;
    await page.getByRole("button", { name: "Views" }).click();
    await page.getByLabel("Name of the view").fill("gone");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.goto(`${visit.url}/console/nodes`);
    await page.getByRole("button", { name: "Views" }).click();
    await page.getByRole("button", { name: "gone", exact: true }).click();
    await page.getByText("6 nodes", { exact: true }).waitFor();
    expect(query(page.url())).toBe("?status=offline&sort=-hostname");
  });

  it("shows a verb's preview before it acts on many nodes, and is refused when the filter matches others by then", async () => {
    const visit = await stage().operator("/nodes?status=retired&site_id=aaaaaaaa-0000-4000-8000-000000000001", {
      expects: /^409$/,
    });
    const { page } = visit;
    await page.getByRole("checkbox", { name: "Select c000u00003" }).check();
    await page.getByRole("button", { name: "Choose all 6 of the filter" }).click();
    await page.getByRole("button", { name: "Do", exact: true }).click();
    await page.getByRole("menuitem", { name: "Activate" }).click();
    const dialog = page.getByRole("dialog", { name: "Activate 6 nodes" });
    await dialog.getByLabel("Reason, for the audit").fill("they are repaired");
    await page.keyboard.press("Enter");
    await dialog.getByText("would change").waitFor();
    expect(visit.written).toEqual(["POST /api/v1/admin/nodes/bulk"]);
    const { body } = await stage().api.ask("GET", "/api/v1/admin/nodes?search=c000u00003");
    await stage().change(`/nodes/${body.items[0].id}/activate`, { reason: "another person was quicker" });
    await dialog.getByRole("button", { name: /^Activate/ }).click();
    await dialog.getByRole("alert").filter({ hasText: "Nothing was changed" }).waitFor();
    await dialog.getByRole("button", { name: "No", exact: true }).click();
    await page.getByText("5 nodes", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Choose none" }).click();
    await page.getByRole("checkbox", { name: "Select all loaded rows" }).check();
    await page.getByRole("button", { name: "Do", exact: true }).click();
    await page.getByRole("menuitem", { name: "Activate" }).click();
    const again = page.getByRole("dialog", { name: "Activate 5 nodes" });
    await again.getByLabel("Reason, for the audit").fill("they are repaired");
    await page.keyboard.press("Enter");
    await again.getByRole("button", { name: "Activate 5 nodes" }).click();
    await page.getByText("Activate: done for 5 nodes, refused for 0.").waitFor();
    await page.getByText("The filter leaves out all nodes").waitFor();
  });
}
