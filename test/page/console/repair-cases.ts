import { expect, it } from "vitest";
import { apiToken } from "../../support/api-token.ts";
import { barriers } from "../barriers.ts";
import type { ConsoleStage } from "./console-stage.ts";

/** The screens of repairs, as an operator and a repair team use them. */
export function consoleRepairCases(stage: () => ConsoleStage): void {
  const nodeOf = async (search: string) =>
    (await stage().api.ask("GET", `/api/v1/admin/nodes?search=${search}`)).body.items[0];

  it("leads a fault from its report to the checks of a repaired machine, and a repair team through its attempt", async () => {
    const { id: nodeId, hostname } = await nodeOf("u00089");
    const visit = await stage().operator(`/nodes/${nodeId}`);
    const { page } = visit;
    const what = `the repair of ${hostname}`;
    await visit.act("Report a fault", `of ${hostname}`, {
      reason: "ticket 4711",
      before: async (dialog) => {
        await dialog.getByLabel("The fault in one sentence").fill("a fan is loud");
        await dialog.getByLabel(/^Request the repair too/).check();
      },
    });
    await page.getByRole("link", { name: "a fan is loud" }).click();
    await visit.heading(`Repair of ${hostname}`).waitFor();
    await page.getByText("The repair waits for a claim").waitFor();
    const token = { role: "repair", sites: null, createdBy: "admin", expiresAt: new Date(Date.now() + 9e6) } as const;
    const fixers = await apiToken(stage().api.database, { ...token, name: "fixers-1", tenant: "fixers" });
    const team = await stage().operator("/repairs?state=requested", {}, fixers);
    await team.page.getByRole("link", { name: hostname }).click();
    const machine = team.page.getByRole("region", { name: "The machine" });
    await machine.getByText("SKU", { exact: true }).waitFor();
    const escalate = team.button(`Escalate ${what}`);
    await escalate.waitFor();
    expect(await escalate.getAttribute("aria-disabled")).toBe("true");
    await team.act("Claim", what, { reason: "the night shift" });
    await page.getByText("fixers-1 repairs the machine").waitFor();
    await team.act("Report", what, {
      reason: "the new fan is loud too",
      before: (dialog) => dialog.getByLabel("Outcome").selectOption("failed"),
    });
    const attempts = page.getByRole("region", { name: "Attempts", exact: true });
    await attempts.getByText("the new fan is loud too").waitFor();
    await visit.act("Report", what, { reason: "the fan was bent" });
    await page.getByText("no sanitization record is about a cleaning after the work").waitFor();
    expect(await barriers(page, "{}"), "the repaired machine").toEqual([]);
    const close = visit.button(`Close ${what}`);
    expect(await close.getAttribute("aria-disabled")).toBe("true");
    await close.hover();
    await page.getByText(/^The machine has not passed all checks: /).waitFor();
    const path = new URL(page.url()).pathname.split("/").at(-1);
    expect(visit.written.at(-1)).toBe(`POST /api/v1/admin/repairs/${path}/report`);
  });

  it("asks for all that the tenant of an online repair accepts, and shows it with the case", async () => {
    const node = await nodeOf("u00088");
    const { body } = await stage().api.ask("GET", `/api/v1/admin/allocations?node_id=${node.id}&status=active`);
    const [{ id, hostname, tenant }] = body.items;
    const visit = await stage().operator(`/allocations/${id}`);
    const { page } = visit;
    await visit.act("Online repair", `of ${hostname} for ${tenant}`, {
      reason: "ticket 4713",
      before: async (dialog) => {
        await dialog.getByLabel("The fault in one sentence").fill("rail 2 is slow");
        await dialog.getByRole("button", { name: "Online repair", exact: true }).click();
        // The browser itself keeps the form back until all boxes are checked.
        for (const box of await dialog.getByLabel(/^The tenant accepts/).all()) await box.check();
        expect(visit.written).toEqual([]);
      },
    });
    await page.getByRole("link", { name: "Look at the repair" }).click();
    const accepted = page.getByRole("region", { name: "What the tenant has accepted" });
    await accepted.getByText("data of the tenant may be damaged").waitFor();
    expect(await accepted.getByRole("listitem").count()).toBe(4);
    await page.goto(`${visit.url}/console/nodes/${node.id}?tab=use`);
    await page.getByRole("region", { name: "As the tenant sees it" }).getByText("Repairing").waitFor();
  });

  it("releases a machine with its fault, and ends a repair by the release of its access", async () => {
    const released = async (search: string) => {
      const node = await nodeOf(search);
      const { body } = await stage().api.ask("GET", `/api/v1/admin/allocations?node_id=${node.id}&status=active`);
      return { node, ...body.items[0] };
    };
    const { node, id, hostname, tenant } = await released("u00090");
    const visit = await stage().operator(`/allocations/${id}`);
    await visit.act("Release", `the allocation of ${hostname} to ${tenant}`, {
      reason: "ticket 4714",
      before: async (dialog) => {
        await dialog.getByLabel("The machine is faulty").check();
        await dialog.getByLabel("Kind of fault").selectOption("Network");
        await dialog.getByLabel("The fault in one sentence").fill("rail 3 is dead");
        expect(await dialog.getByLabel("What came of the repair").count()).toBe(0);
        expect(await barriers(visit.page, "{}"), "the release").toEqual([]);
      },
    });
    const repairOf = async (nodeId: string) =>
      (await stage().api.ask("GET", `/api/v1/admin/repairs?node_id=${nodeId}`)).body.items[0];
    expect(await repairOf(node.id)).toMatchObject({
      ...{ state: "reported", issue: { category: "Network", summary: "rail 3 is dead" } },
    });
    const access = await released("u00092");
    await stage().api.database.database.pool.query(
      `insert into repair_cases (node_id, site_id, hostname, mode, state, category, summary, opened_by, attempt, claimed_by, claim_until, access_allocation_id)
        select id, site_id, hostname, 'full', 'claimed', 'Hardware', 'a fan is loud', 'ann', 1, 'acme', now() + interval '1 day', $2 from nodes where id = $1`,
      [access.node.id, access.id],
    );
    // The release on the screen of the node is the same.
    await visit.page.goto(`${visit.url}/console/nodes/${access.node.id}?tab=use`);
    await visit.act("Release", `the allocation of ${access.hostname} to ${access.tenant}`, {
      reason: "a new fan",
      before: (dialog) => dialog.getByLabel("What came of the repair").selectOption("Completed"),
    });
    expect(await repairOf(access.node.id)).toMatchObject({ state: "repaired" });
    expect(visit.written).toEqual([id, access.id].map((one) => `POST /api/v1/admin/allocations/${one}/release`));
  });

  it("releases nothing before it knows whether the allocation is the access of a repair", async () => {
    const node = await nodeOf("u00094");
    const { body } = await stage().api.ask("GET", `/api/v1/admin/allocations?node_id=${node.id}&status=active`);
    const [{ id, hostname, tenant }] = body.items;
    const { pool } = stage().api.database.database;
    // The access of the open repair is the ended allocation of another person.
    await pool.query(
      `insert into repair_cases (node_id, site_id, hostname, mode, state, category, summary, opened_by, attempt, claimed_by, claim_until, access_allocation_id)
        select n.id, n.site_id, n.hostname, 'full', 'claimed', 'Hardware', 'a fan is loud', 'ann', 1, 'acme', now() + interval '1 day',
          (select id from allocations where node_id <> n.id limit 1) from nodes n where n.id = $1`,
      [node.id],
    );
    const visit = await stage().operator(`/allocations/${id}`, { expects: /^503$/ });
    const { page } = visit;
    const away = "**/api/v1/admin/repairs?*";
    await page.route(away, (route) => route.fulfill({ status: 503, json: { code: "away", detail: "Not now." } }));
    const what = `the allocation of ${hostname} to ${tenant}`;
    await visit.button(`Release ${what}`).click();
    const dialog = page.getByRole("dialog", { name: `Release ${what}` });
    await dialog.getByRole("alert").getByText("Not now.").waitFor();
    await dialog.getByLabel("Reason, for the audit").fill("ticket 4715");
    await page.keyboard.press("Enter");
    expect(await dialog.getByRole("button", { name: "Release", exact: true }).isDisabled()).toBe(true);
    await page.unroute(away);
    await dialog.getByRole("button", { name: "Try again" }).click();
    await dialog.getByLabel("The machine is faulty").waitFor();
    expect(await dialog.getByLabel("What came of the repair").count()).toBe(0);
    expect(visit.written).toEqual([]);
    await dialog.getByRole("button", { name: "Release", exact: true }).click();
    await page.getByText(`Release ${what}: the hub has taken it.`).waitFor();
  });
}
