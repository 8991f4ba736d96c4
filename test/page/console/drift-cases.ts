import { beforeAll, expect, it } from "vitest";
import type { ConsoleStage } from "./console-stage.ts";
import { DARK, MARKUP, seedDarkSite } from "./dark-site.ts";

const RECONCILIATION = "/api/v1/admin/reconciliation";

/** The drift, the breakers and the texts of a site whose MAAS no hub can reach. */
export function consoleDriftCases(stage: () => ConsoleStage): void {
  let site = "";
  beforeAll(async () => {
    site = await seedDarkSite(stage().api.database);
  });
  const nodeOf = async (hostname: string) => {
    const { body } = await stage().api.ask("GET", `/api/v1/admin/nodes?site_id=${site}`);
    return body.items.find((one: { hostname: string }) => one.hostname === hostname);
  };

  it("lists the nodes that differ, acknowledges a drift, and returns a node to service", async () => {
    const visit = await stage().operator(`/drift?site_id=${site}`);
    const { page } = visit;
    const row = (hostname: string) => page.getByRole("row").filter({ hasText: hostname });
    await row(DARK.gone).getByText("machine deleted: MAAS says").waitFor();
    expect(await page.getByRole("row").count()).toBe(4);
    const back = page.getByRole("button", { name: `Return to service the drift of ${DARK.gone}` });
    expect(await back.getAttribute("aria-disabled")).toBe("true");
    await visit.act("Acknowledge", `the drift of ${DARK.gone}`, { reason: "known since Monday" });
    await row(DARK.gone).waitFor({ state: "detached" });
    await visit.act("Return to service", `the drift of ${DARK.mended}`, { reason: "the fan is new" });
    await row(DARK.mended).waitFor({ state: "detached" });
    expect((await nodeOf(DARK.mended)).status).toBe("active");
    await page.getByLabel("Acknowledged", { exact: true }).selectOption("true");
    await row(DARK.gone).getByText("acknowledged by admin").waitFor();
    expect(new URL(page.url()).search).toBe(`?site_id=${site}&known=true`);
  });

  it("shows markup in a name, a reason or a message as text", async () => {
    const visit = await stage().operator(`/nodes/${(await nodeOf(DARK.known)).id}`);
    const { page } = visit;
    await page.getByText(`Acknowledged by ann`).waitFor();
    expect(await page.getByRole("main").textContent()).toContain(`MAAS says ${MARKUP} of this machine`);
    await page.goto(`${visit.url}/console/nodes/${(await nodeOf(DARK.odd)).id}`);
    await visit.heading(DARK.odd).waitFor();
    await page.goto(`${visit.url}/console/drift?known=true`);
    await page.getByRole("row").filter({ hasText: DARK.odd }).waitFor();
    expect(await page.locator("img").count()).toBe(0);
  });

  it("resets one breaker, and accepts the drift behind another", async () => {
    const visit = await stage().operator(`/sites/${site}`);
    const { page } = visit;
    await page.getByText("7 nodes of 12 would change status at once, and the limit is 5.").first().waitFor();
    await visit.act("Reset", "the breaker for offline", { reason: "the network is back" });
    await page.getByText("The breaker for offline is open").waitFor({ state: "detached" });
    await visit.act("Reset", "the breaker for quarantine", {
      reason: "they were all moved",
      before: (dialog) => dialog.getByLabel("Accept what MAAS says").check(),
    });
    await page.getByText("The breaker for quarantine is accepting").waitFor();
    const { body } = await stage().api.ask("GET", `${RECONCILIATION}/breakers`);
    expect(body.items.map((one: { kind: string; state: string }) => `${one.kind} ${one.state}`).toSorted()).toEqual([
      "offline closed",
      "quarantine accepting",
    ]);
  });

  it("keeps the dialog of a refused verb open with the refusal, although the drift is gone", async () => {
    const visit = await stage().operator(`/drift?site_id=${site}`, { expects: /^4\d\d$/ });
    const { page } = visit;
    await visit.button(`Acknowledge the drift of ${DARK.odd}`).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Reason, for the audit").fill("known");
    await stage().api.database.database.pool.query(
      `update node_maas_state set drift_detected = false, drift_details = null
        from nodes where nodes.id = node_id and nodes.hostname = $1`,
      [DARK.odd],
    );
    await dialog.getByRole("button", { name: "Acknowledge", exact: true }).click();
    await page.getByText("No node is in this list").waitFor();
    expect(await dialog.getByRole("alert").textContent()).toMatch(/drift/);
  });
}
