import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { SSH_KEY } from "../../support/allocatable-node.ts";
import { apiToken } from "../../support/api-token.ts";
import { insertSite } from "../../support/site.ts";
import { barriers } from "../barriers.ts";
import type { ConsoleStage } from "./console-stage.ts";
import { PROFILE, SITE } from "./screens.ts";

export function consoleFormCases(stage: () => ConsoleStage): void {
  it("checks a form before it sends anything, and shows a new token once", async () => {
    const visit = await stage().operator("/tokens/new");
    const { page, written } = visit;
    const make = page.getByRole("button", { name: "Make the token" });
    await page.getByLabel("Days until it expires").fill("400");
    await make.click();
    await page.getByText("2 fields need a change; nothing was sent.").waitFor();
    await page.getByText("is no whole number from 1 to 366").waitFor();
    expect(written).toEqual([]);
    await page.getByLabel("Name").fill("console-token");
    await page.getByLabel("Days until it expires").fill("30");
    await make.click();
    await page.getByText("Copy the token now: it is shown once").waitFor();
    const secret = (await page.getByText(/^mstr_/).textContent()) ?? "";
    const { status } = await stage().api.ask("GET", "/api/v1/admin/status", undefined, {
      authorization: `Bearer ${secret}`,
    });
    expect(status).toBe(200);
    await page.getByRole("link", { name: "All tokens" }).click();
    await page.getByRole("link", { name: "console-token" }).waitFor();
    expect(await page.content()).not.toContain(secret);
    expect(written).toEqual(["POST /api/v1/admin/tokens"]);
  });

  it("allocates several nodes of a SKU at once, or none if these are too few", async () => {
    const free = await stage().api.ask("GET", "/api/v1/admin/nodes?schedulable=true&limit=1");
    const { site_id: site, sku_id: sku } = free.body.items[0];
    const visit = await stage().operator("/allocations/new", { expects: /^409$/ });
    const { page, written } = visit;
    await page.getByRole("radio", { name: "Several free nodes of a SKU at a site, all or none" }).check();
    await page.getByRole("combobox", { name: "SKU" }).selectOption(sku);
    await page.getByRole("combobox", { name: "Site" }).selectOption(site);
    await page.getByRole("textbox", { name: "Tenant" }).fill("initech");
    await page.getByRole("textbox", { name: "Account" }).fill("ada");
    await page.getByRole("textbox", { name: "Public SSH keys" }).fill(SSH_KEY);
    await page.getByRole("textbox", { name: "Number of nodes" }).fill("65");
    await visit.button("Allocate").click();
    await page.getByText("is no whole number from 1 to 64").waitFor();
    expect(written).toEqual([]);
    expect(await barriers(page, "{}"), "the fields for several nodes").toEqual([]);
    await page.getByRole("textbox", { name: "Number of nodes" }).fill("64");
    await page.getByRole("switch", { name: "One rack" }).check();
    await visit.button("Allocate").click();
    await page.getByText(/Nothing was allocated/).waitFor();
    await page.getByRole("textbox", { name: "Number of nodes" }).fill("2");
    await page.getByRole("switch", { name: "One rack" }).uncheck();
    await page.getByRole("textbox", { name: "Name prefix" }).fill("worker");
    await visit.button("Allocate").click();
    await page.getByText("2 nodes are allocated to initech.").waitFor();
    expect(written).toEqual(["POST /api/v1/admin/allocation-batches", "POST /api/v1/admin/allocation-batches"]);
    const { items } = (await stage().api.ask("GET", "/api/v1/admin/allocations?tenant=initech")).body;
    expect(items.map(({ name }: { name: string }) => name.slice(0, 7))).toEqual(["worker-", "worker-"]);
    // Other cases need these nodes free.
    const { pool } = stage().api.database.database;
    const gone = await pool.query("delete from allocations where tenant = 'initech' returning grant_task_id");
    await pool.query("delete from tasks where id = any($1)", [gone.rows.map(({ grant_task_id: id }) => id)]);
  });

  it("names line and column of a fault in a table of hosts, and sends nothing", async () => {
    const visit = await stage().operator("/onboard?many=true");
    const { page, written } = visit;
    const table = page.getByLabel("Table of hosts as CSV");
    await table.fill("hostname,ipmi_ip\nnew-1,10.9.0.1\nnew-2,10.9.0.300\nnew-1,10.9.0.3\n");
    await page.getByText("line 3, column ipmi_ip: is no IPv4 or IPv6 address").waitFor();
    await page.getByText("line 4, column hostname: new-1 is in line 2 already").waitFor();
    await page.getByRole("button", { name: "Onboard all hosts" }).click();
    await page.getByText(/fields need a change; nothing was sent/).waitFor();
    expect(written).toEqual([]);
    await table.fill("hostname;ipmi_ip\nnew-1;10.9.0.1\n");
    await page.getByText("1 host in the table").waitFor();
  });

  it("changes a profile and a site by the version that the person saw, and is refused if somebody else was quicker", async () => {
    const visit = await stage().operator(`/sites/${SITE}/profiles/${PROFILE}`, { expects: /^412$/ });
    const { page, written } = visit;
    const change = page.getByRole("button", { name: "Change the profile", exact: true });
    await page.getByLabel("Automatic redeploys").fill("6");
    await change.click();
    await page.getByText("is no whole number from 0 to 5").waitFor();
    expect(written).toEqual([]);
    await page.getByLabel("Automatic redeploys").fill("3");
    await page.getByLabel("Folders that are emptied").fill("/scratch");
    await change.click();
    await page.getByText("The profile usual is changed.").waitFor();
    const path = `/api/v1/admin/maas-sites/${SITE}`;
    const { body } = await stage().api.ask("GET", `${path}/profiles/${PROFILE}`);
    expect(body).toMatchObject({
      max_deploy_retry_attempts: 3,
      scratch_folders: ["/scratch"],
      distro_series: "ubuntu/noble",
    });
    await page.getByRole("link", { name: "Change the site" }).click();
    await visit.heading("Change dc0").waitFor();
    await stage().changeVersion(`/maas-sites/${SITE}`, { pxe_vlan_vid: 5 });
    const send = async () => {
      await page.getByLabel("A tenant's report of a fault also asks for a repair").check();
      // The seeded site has none.
      await page.getByLabel("Upstream DNS servers").fill("9.9.9.9");
      await page.getByRole("button", { name: "Change the site", exact: true }).click();
    };
    await send();
    await page.getByRole("alert").waitFor();
    await page.reload();
    await send();
    await page.getByText("The site dc0 is changed.").waitFor();
    expect((await stage().api.ask("GET", path)).body).toMatchObject({ pxe_vlan_vid: 5, auto_repair: true });
  });

  it("shows the plan of an adoption with what the hub refuses, and adopts nothing without a plan", async () => {
    // The hub adopts only at a site whose machines it has just read.
    await stage().api.database.database.pool.query(
      "insert into maas_site_watches (site_id, last_poll_at) values ($1, now())",
      [SITE],
    );
    const visit = await stage().operator(`/adopt?site_id=${SITE}`);
    const { page, written } = visit;
    await page.getByLabel("Profile").selectOption(PROFILE);
    await page.getByLabel("SKU").selectOption("h100");
    await page.getByRole("button", { name: "Show the plan" }).click();
    await page.getByText("is missing: a filter needs tags").waitFor();
    expect(written).toEqual([]);
    await page.getByText("Named machines", { exact: true }).click();
    await page.getByLabel("Hostnames in MAAS").fill("nobody-knows-it");
    await page.getByRole("button", { name: "Show the plan" }).click();
    await page.getByText("0 machines would be adopted, 0 known already, 1 refused").waitFor();
    const adopt = visit.button("Adopt 0 machines");
    expect(await adopt.getAttribute("aria-disabled")).toBe("true");
    expect(await barriers(page, "{}"), "the plan").toEqual([]);
    // A changed form needs a new plan.
    await page.getByLabel("Hostnames in MAAS").fill("nobody");
    await adopt.waitFor({ state: "detached" });
    expect(written).toEqual([`POST /api/v1/admin/maas-sites/${SITE}/adoptions`]);
  });

  it("leads a request that needs a second person to its end", async () => {
    const { api } = stage();
    const { pool, db } = api.database.database;
    const ann = await apiToken(api.database, { name: "ann", role: "operator" });
    const bob = await apiToken(api.database, { name: "bob", role: "operator" });
    const siteId = await insertSite(db, { name: "guarded-dc" });
    const { body: profile } = await api.ask("POST", `/api/v1/admin/maas-sites/${siteId}/profiles`, { name: "guarded" });
    // The API refuses the field on a hub without sign-in by a provider.
    await pool.query("update maas_site_profiles set second_person = '{full_decommission}' where id = $1", [profile.id]);
    await pool.query("update maas_sites set default_profile_id = $2 where id = $1", [siteId, profile.id]);
    const node = randomUUID();
    await pool.query(
      `insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, status, onboarding_mode)
        values ($1, 'guarded-1', $2, 'h100', 8, 'guarded-1', 'retired', 'maas')`,
      [node, siteId],
    );
    // The hub answers a request that needs a second person with 409.
    const asker = await stage().operator(`/nodes/${node}`, { expects: /^409$/ }, ann);
    await asker.button("Remove guarded-1").click();
    const asking = asker.page.getByRole("dialog", { name: "Remove guarded-1", exact: true });
    await asking.getByLabel("Reason, for the audit").fill("sold");
    await asking.getByRole("button", { name: "Remove", exact: true }).click();
    const asked = asker.page.getByRole("status").filter({ hasText: "needs a second person" });
    await asked.getByRole("link").click();
    const own = asker.page.getByRole("button", { name: /^Approve request/ });
    await own.waitFor();
    expect(await own.getAttribute("aria-disabled")).toBe("true");
    const visit = await stage().operator("/approvals", {}, bob);
    const { page } = visit;
    await page
      .getByRole("row", { name: /guarded-1/ })
      .getByRole("link")
      .click();
    await page.getByRole("button", { name: /^Approve request/ }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Reason, for the audit").fill("I was in the rack");
    await dialog.getByRole("button", { name: "Approve" }).click();
    await page.getByText(/Approved by bob: I was in the rack/).waitFor();
    // The note stays on every screen of the tab in which Ann has asked.
    await asker.page.getByRole("link", { name: "Overview" }).click();
    await asked.getByText("approved by bob (I was in the rack). You can carry it out once.").waitFor();
    expect(await barriers(asker.page, "{}"), "the note").toEqual([]);
    await asked.getByRole("button", { name: "Carry out" }).click();
    await asked.waitFor({ state: "detached" });
    expect((await api.ask("GET", "/api/v1/admin/approvals?state=used")).body.items).toMatchObject([
      { decided_by: "bob" },
    ]);
    const removals = asker.written.filter((request) => request.endsWith("/remove"));
    expect(removals).toEqual([1, 2].map(() => `POST /api/v1/admin/nodes/${node}/remove`));
  });
}
