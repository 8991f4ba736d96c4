import { expect, it } from "vitest";
import { sshKeyOf } from "../../support/tenant-orders.ts";
import { barriers } from "../barriers.ts";
import type { ConsoleStage } from "./console-stage.ts";
import { ALLOCATION, KEY } from "./key-seed.ts";

export function consoleKeyCases(stage: () => ConsoleStage): void {
  it("stores, renames and deletes a public key, and sends no private one", async () => {
    const visit = await stage().operator("/ssh-keys?tenant=umbrella", { expects: /^412$/ });
    const { page, written } = visit;
    await page.getByText("The filter leaves out all keys").waitFor();
    await visit.button("New key").click();
    const form = page.getByRole("form", { name: "New key" });
    await form.getByLabel("Name").fill("desk");
    await form.getByLabel("Public key").fill("-----BEGIN OPENSSH PRIVATE KEY-----");
    await visit.button("Store the key").click();
    await form.getByText("is a private key.").waitFor();
    expect(await barriers(page, "{}"), "the form of a key").toEqual([]);
    expect(written).toEqual([]);
    await form.getByLabel("Public key").fill(`${sshKeyOf("D")}\n`);
    await visit.button("Store the key").click();
    await visit.heading("desk").waitFor();
    const id = new URL(page.url()).pathname.split("/").at(-1);
    await visit.button("Rename the key desk").click();
    const renaming = page.getByRole("dialog", { name: "Rename the key desk" });
    await renaming.getByLabel("New name").fill("desk of Bob");
    await stage().changeVersion(`/ssh-keys/${id}`, { name: "table" });
    await renaming.getByRole("button", { name: "Rename", exact: true }).click();
    await renaming.getByRole("alert").getByText("Somebody else has changed it meanwhile.").waitFor();
    await page.getByRole("heading", { name: "table", includeHidden: true }).waitFor();
    await renaming.getByRole("alert").waitFor();
    await page.keyboard.press("Escape");
    await visit.act("Rename", "the key table", {
      before: (dialog) => dialog.getByLabel("New name").fill("desk of Bob"),
    });
    await visit.heading("desk of Bob").waitFor();
    await page.getByText("No group has the key.").waitFor();
    await visit.act("Delete", "the key desk of Bob", {
      before: (dialog) => dialog.getByText("No open allocation follows, so no account changes.").waitFor(),
    });
    await page.getByText("The filter leaves out all keys").waitFor();
    expect(written).toEqual([
      "POST /api/v1/admin/ssh-keys",
      `PATCH /api/v1/admin/ssh-keys/${id}`,
      `PATCH /api/v1/admin/ssh-keys/${id}`,
      `DELETE /api/v1/admin/ssh-keys/${id}`,
    ]);
  });

  it("makes a group of stored keys, and changes only what the person changes", async () => {
    const keyOf = async (name: string, site_ids?: string[]) =>
      (
        await stage().api.ask("POST", "/api/v1/admin/ssh-keys", {
          ...{ name, tenant: "initech", public_key: sshKeyOf(name), ...(site_ids === undefined ? {} : { site_ids }) },
        })
      ).body.id;
    const sites = ["aaaaaaaa-0000-4000-8000-000000000000"];
    const [e, f] = [await keyOf("E"), await keyOf("F", sites)];
    const visit = await stage().operator("/ssh-key-groups", { expects: /^412$/ });
    const { page, written } = visit;
    await visit.button("New group").click();
    const form = page.getByRole("form", { name: "New group" });
    await form.getByLabel("Tenant").fill("initech");
    await form.getByLabel("Name").fill("staff");
    await form.getByRole("checkbox", { name: "E", exact: true }).check();
    await form.getByRole("checkbox", { name: "F", exact: true }).check();
    await visit.button("Make the group").click();
    await form.getByText("has keys that may not be used at all sites of the group: F").waitFor();
    expect(written).toEqual([]);
    await form.getByRole("checkbox", { name: "F", exact: true }).uncheck();
    await visit.button("Make the group").click();
    await visit.heading("staff").waitFor();
    const path = `/api/v1/admin/ssh-key-groups/${new URL(page.url()).pathname.split("/").at(-1)}`;
    const change = async (before: () => Promise<unknown>) => {
      await visit.button("Change").click();
      const fields = page.getByRole("form", { name: "Change staff" });
      await fields.getByRole("checkbox", { name: "F", exact: true }).check();
      await fields.getByRole("checkbox", { name: "dc0", exact: true }).check();
      await before();
      await visit.button("Change the group").click();
      return fields;
    };
    const sent: string[] = [];
    const refused = await change(async () => {
      await stage().changeVersion(path.replace("/api/v1/admin", ""), { description: "by another" });
      page.on("request", (request) => sent.push(request.method()));
      await visit.lookAway();
    });
    await refused.getByRole("alert").waitFor();
    expect(sent[0], "the form asks nothing before it is sent").toBe("PATCH");
    await visit.button("No change").click();
    const taken = await change(() => Promise.resolve());
    await taken.waitFor({ state: "detached" });
    const members = page.getByRole("region", { name: "Members", exact: true });
    await members.getByRole("link", { name: "F", exact: true }).waitFor();
    expect((await stage().api.ask("GET", path)).body).toMatchObject({
      ...{ key_ids: [e, f], site_ids: sites, description: "by another" },
    });
  });

  it("says that the keys of a tenant cannot be read, and lets a person take out one that is gone", async () => {
    const of = { tenant: "hooli" };
    const { body } = await stage().api.ask("POST", "/api/v1/admin/ssh-keys", {
      ...{ ...of, name: "old", public_key: sshKeyOf("O") },
    });
    const visit = await stage().operator("/ssh-key-groups?tenant=hooli", { expects: /^503$/ });
    const { page } = visit;
    const away = "**/api/v1/admin/ssh-keys?*";
    await page.route(away, (route) => route.fulfill({ status: 503, json: { code: "away", detail: "Not now." } }));
    await visit.button("New group").click();
    const form = page.getByRole("form", { name: "New group" });
    await form.getByRole("alert").getByText("Not now.").waitFor();
    await page.unroute(away);
    await form.getByRole("button", { name: "Try again" }).click();
    await form.getByRole("checkbox", { name: "old", exact: true }).check();
    expect((await stage().api.ask("DELETE", `/api/v1/admin/ssh-keys/${body.id}`)).status).toBe(204);
    await visit.button("Refresh").click();
    const gone = form.getByRole("checkbox", { name: body.id.slice(0, 8) });
    await gone.click();
    await gone.waitFor({ state: "detached" });
  });

  it("allocates a node with a stored group, and says which accounts follow the deletion of its key", async () => {
    const visit = await stage().operator("/allocations/new?hostname=c000u00009", { expects: /^(409|503)$/ });
    const { page, written } = visit;
    await page.getByRole("textbox", { name: "Tenant" }).fill("acme");
    await page.getByRole("textbox", { name: "Account" }).fill("ada");
    await page.getByRole("radio", { name: "Stored keys and groups of the tenant" }).check();
    await page.getByRole("checkbox", { name: "team", exact: true }).waitFor();
    await visit.button("Allocate").click();
    await page.getByText("is missing: choose a key or a group").waitFor();
    expect(await barriers(page, "{}"), "the choice of stored keys").toEqual([]);
    expect(written).toEqual([]);
    await page.getByRole("checkbox", { name: "team", exact: true }).check();
    const { pool } = stage().api.database.database;
    await pool.query(
      `insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, status, onboarding_mode)
        select gen_random_uuid(), hostname, 'aaaaaaaa-0000-4000-8000-000000000000', sku, gpus_total, region_code, 'retired', 'maas'
        from nodes where hostname = 'c000u00009'`,
    );
    await visit.button("Allocate").click();
    await page.getByText("Nodes of several sites have the hostname c000u00009.").waitFor();
    expect(written).toEqual([]);
    await page.getByRole("combobox", { name: "Site" }).selectOption("dc1");
    await visit.button("Allocate").click();
    await visit.heading("c000u00009 for acme").waitFor();
    await pool.query("delete from nodes where hostname = 'c000u00009' and status = 'retired'");
    const named = page.getByRole("region", { name: "Stored keys and groups", exact: true });
    await named.getByText("The agent makes the account on c000u00009").waitFor();
    await named.getByText("Group team").waitFor();
    await page.goto(`${visit.url}/console/ssh-keys/${KEY}`);
    await page.getByRole("link", { name: ALLOCATION.slice(0, 8), exact: true }).waitFor();
    const away = "**/api/v1/admin/allocations?*";
    await page.route(away, (route) => route.fulfill({ status: 503, json: { code: "away", detail: "Not now." } }));
    await visit.button("Delete the key laptop of Ada").click();
    const dialog = page.getByRole("dialog", { name: "Delete the key laptop of Ada" });
    await dialog.getByText("Not now.").waitFor();
    expect(await dialog.getByRole("button", { name: "Delete", exact: true }).isDisabled()).toBe(true);
    await page.unroute(away);
    await dialog.getByRole("button", { name: "Try again" }).click();
    await dialog.getByText("2 open allocations will follow: c000u00009, c20.").waitFor();
    expect(await barriers(page, "{}"), "the deletion").toEqual([]);
    await dialog.getByRole("button", { name: "Delete", exact: true }).click();
    await dialog.getByRole("alert").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: ALLOCATION.slice(0, 8), exact: true }).click();
    await visit.heading("c20 for acme").waitFor();
    await named.getByText("a change is due").waitFor();
  });
}
