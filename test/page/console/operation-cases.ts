import { expect, it } from "vitest";
import type { ConsoleStage } from "./console-stage.ts";
import { OPERATION } from "./screens.ts";

/** Each stage and how long it took, as the bars and as the table say it. */
const BARS = `[...document.querySelectorAll("[data-words]")].map((row) => row.textContent.replace(/; .*/, ""))`;
const TABLE = `[...document.querySelectorAll("section[aria-label='The stages as a table'] tbody tr")].map(({ cells }) =>
  cells[0].textContent + ": " + cells[1].textContent + (cells[1].textContent === "expected" ? "" : ", " + cells[3].textContent))`;

export function consoleOperationCases(stage: () => ConsoleStage): void {
  it("shows the same stages and lengths as bars and as a table, and opens a stage by the keyboard", async () => {
    const visit = await stage().operator(`/operations/${OPERATION}`);
    const { page } = visit;
    const row = page.getByRole("button", { name: /^wait for ready: succeeded, 20 min/ });
    await row.focus();
    await page.keyboard.press("Enter");
    await page.getByText("MAAS to commission and test").first().waitFor();
    const bars = await page.evaluate(BARS);
    await page.getByText("Table", { exact: true }).click();
    await page.getByRole("columnheader", { name: "Usually" }).waitFor();
    expect(await page.evaluate(TABLE)).toEqual(bars);
    expect(new URL(page.url()).search).toContain("view=table");
  });

  it("says why a verb cannot be given, and shows what others change without a reload", async () => {
    const visit = await stage().operator("/nodes?search=u00060");
    const { page } = visit;
    await page.getByRole("link", { name: "c001u00060" }).click();
    await visit.heading("c001u00060").waitFor();
    const activate = page.getByRole("button", { name: "Activate c001u00060" });
    expect(await activate.getAttribute("aria-disabled")).toBe("true");
    await activate.hover();
    await page.getByText("Only a retired node can be activated.").waitFor();
    const id = new URL(page.url()).pathname.split("/").at(-1);
    await stage().change(`/nodes/${id}/cordon`, { reason: "a person looks at its cables" });
    await page.getByRole("button", { name: "Uncordon c001u00060" }).waitFor();
    // A change by others leaves an open dialog and the focus alone.
    await visit.button("Quarantine c001u00060").click();
    const reason = page.getByRole("dialog").getByLabel("Reason, for the audit");
    await reason.fill("half a rea");
    await stage().change(`/nodes/${id}/uncordon`, { reason: "the cables are fine" });
    await page.getByRole("button", { name: "Cordon c001u00060", includeHidden: true }).waitFor({ state: "attached" });
    await page.keyboard.type("son");
    expect(await reason.inputValue()).toBe("half a reason");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    expect(await page.evaluate("document.activeElement.ariaLabel")).toBe("Quarantine c001u00060");
    expect(visit.written).toEqual([]);
    await stage().change(`/nodes/${id}/cordon`, { reason: "a person looks at its cables" });
    await page.getByText("a person looks at its cables").first().waitFor();
  });
}
