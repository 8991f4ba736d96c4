import { expect, it } from "vitest";
import { apiToken } from "../../support/api-token.ts";
import { barriers } from "../barriers.ts";
import type { ConsoleStage } from "./console-stage.ts";

/** The verbs of nodes, operations, batches, tokens and the hub's keys, as a person gives them. */
export function consoleVerbCases(stage: () => ConsoleStage): void {
  const query = (text: string, values: unknown[] = []) => stage().api.database.database.pool.query(text, values);
  const nodeOf = async (search: string) =>
    (await stage().api.ask("GET", `/api/v1/admin/nodes?search=${search}`)).body.items[0];

  it("shows the plan of a drain, begins it, and follows it to its end by the hub's events", async () => {
    const { id, hostname } = await nodeOf("u00087");
    const visit = await stage().operator(`/nodes/${id}`);
    const { page } = visit;
    await visit.act("Drain", hostname, {
      reason: "a new rack",
      before: (dialog) => dialog.getByText("The hub would begin the drain now.").waitFor(),
    });
    await page.getByRole("link", { name: "Look at the operation" }).click();
    await visit.heading(`Drain of ${hostname}`).waitFor();
    const operation = new URL(page.url()).pathname.split("/").at(-1);
    // What a runner would write, and the event that it writes with it.
    await query("update workflows set status = 'running', wait_reason = 'Two users to leave' where id = $1", [
      operation,
    ]);
    await query(
      "insert into domain_events (type, subject, data) values ('operation.progressed', $1, jsonb_build_object('node_id', $2::text))",
      [`decommissions/${operation}`, id],
    );
    await page.getByText("Two users to leave").first().waitFor();
    await visit.act("Cancel", `the drain of ${hostname}`, { reason: "not this one" });
    expect((await stage().api.ask("GET", `/api/v1/admin/decommissions/${operation}`)).body.reason).toBe("a new rack");
  });

  it("enrolls a node again whose identity two hosts used, with a command that is shown once", async () => {
    const { id, hostname } = await nodeOf("u00085");
    await query(
      "update node_conditions set status = 'False', reason = 'TwoUsers', message = 'two addresses' where node_id = $1 and type = 'agent.identity'",
      [id],
    );
    const visit = await stage().operator(`/nodes/${id}`);
    const { page } = visit;
    await page.getByText("Identity, baseline and reports").click();
    await visit.act("Re-enroll", hostname, { reason: "the copy is off" });
    const shown = page.getByRole("dialog", { name: `Run this on ${hostname} as root` });
    const command = (await shown.locator("pre").textContent()) ?? "";
    expect(command).toContain("curl");
    await page.keyboard.press("Escape");
    await shown.waitFor({ state: "hidden" });
    expect(await page.content()).not.toContain(command);
    expect(visit.written).toEqual([`POST /api/v1/admin/nodes/${id}/re-enroll`]);
  });

  it("removes a health override, and shows it in the node's history", async () => {
    const { id, hostname } = await nodeOf("u00086");
    await query(
      "insert into node_health_overrides (node_id, source, reason, set_by) values ($1, 'disk-erase', 'not erased', 'operator:ann')",
      [id],
    );
    await query(
      "insert into node_health_overrides (node_id, source, reason, set_by) values ($1, 'old-fault', 'a fan', 'operator:ann')",
      [id],
    );
    const visit = await stage().operator(`/nodes/${id}`, { expects: /^4\d\d$/ });
    await visit.page.getByText("an erase with evidence (secure or stronger), or a person").waitFor();
    // The row goes when the hub refuses the verb, and the dialog with the refusal stays.
    const gone = visit.page.getByRole("button", {
      name: `Remove override old-fault of ${hostname}`,
      includeHidden: true,
    });
    await gone.click();
    const dialog = visit.page.getByRole("dialog", { name: `Remove override old-fault of ${hostname}` });
    await query("delete from node_health_overrides where node_id = $1 and source = 'old-fault'", [id]);
    await dialog.getByLabel("Reason, for the audit").fill("a new fan");
    await dialog.getByRole("button", { name: "Remove override", exact: true }).click();
    await gone.waitFor({ state: "detached" });
    await dialog.getByRole("alert").waitFor();
    await visit.page.keyboard.press("Escape");
    await visit.act("Remove override", `disk-erase of ${hostname}`, { reason: "the disks were replaced" });
    await visit.page.getByText("Nobody has said that something is wrong with the node.").waitFor();
    await visit.act("Set override", `of ${hostname}`, {
      reason: "a cable is changed",
      before: (dialog) => dialog.getByLabel("What is wrong, for operators").fill("rail 2 has no cable"),
    });
    await visit.page.getByText("Maintenance: rail 2 has no cable").waitFor();
    await visit.page.getByRole("tab", { name: "History" }).click();
    await visit.page.getByText("the disks were replaced").first().waitFor();
  });

  it("shows how an external system provisions a node, and abandons its attempt", async () => {
    const { body } = await stage().api.ask("POST", "/api/v1/admin/external-attempts", {
      ...{ hostname: "foreman-1", sku_id: "h100", region_code: "r", provisioner: "foreman-eu", agent: "none" },
    });
    const provisioner = await apiToken(stage().api.database, { name: "ann-2", role: "operator" });
    const visit = await stage().operator(`/nodes/${body.attempt.node_id}`, {}, provisioner);
    const { page } = visit;
    const part = page.getByRole("region", { name: "External provisioning", exact: true });
    await part.getByText("foreman-eu, reported by admin").waitFor();
    const complete = visit.button("Complete the provisioning of foreman-1");
    expect(await complete.getAttribute("aria-disabled")).toBe("true");
    expect(await barriers(page, "{}"), "the node of an external system").toEqual([]);
    await visit.act("Abandon", "the provisioning of foreman-1", { reason: "the host is broken" });
    await part.getByText("abandoned", { exact: true }).waitFor();
    expect(visit.written).toEqual([`POST /api/v1/admin/external-attempts/${body.attempt.id}/abandon`]);
  });

  it("pauses and resumes a batch, and names its refused and failed nodes with their reasons", async () => {
    const site_id = (await nodeOf("u00001")).site_id;
    await query(
      `insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, status, onboarding_mode)
        select gen_random_uuid(), 'batch-' || n, $1, 'h100', 8, 'r', case when n = 4 then 'retired' else 'quarantined' end, 'maas'
        from generate_series(1, 4) n`,
      [site_id],
    );
    const operation = { mode: "drain", reason: "the rack moves" };
    const { body } = await stage().api.ask("POST", "/api/v1/admin/decommissions/batch", {
      site_id,
      operation,
      filter: { hostname_prefix: "batch-" },
      expected_count: 4,
    });
    const visit = await stage().operator(`/batches/decommission/${body.batch_id}`);
    const { page } = visit;
    await page.getByRole("row").filter({ hasText: "batch-4" }).getByText("conflict").waitFor();
    await visit.act("Pause", "the batch", { reason: "lunch" });
    await page
      .getByText(/Paused .*by admin: lunch/)
      .first()
      .waitFor();
    await query(
      `update workflows set status = 'failed_manual_intervention', completed_at = now(), wake_at = null, lease_owner = null,
        fence = fence + 1, failure_class = 'upstream_transient', failure_code = 'maas_timeout', failure_message = 'no answer'
        where id = (select id from workflows where batch_id = $1 order by id limit 1)`,
      [body.batch_id],
    );
    await visit.act("Resume", "the batch", { reason: "the meal is over" });
    await page.getByText(/batch-\d: no answer/).waitFor();
    expect(visit.written).toEqual(
      ["pause", "resume"].map((verb) => `POST /api/v1/admin/decommission-batches/${body.batch_id}/${verb}`),
    );
  });

  it("gives all operations of a failure the recommended verb after a preview, and names those that the hub refuses", async () => {
    await query("update workflows set failure_code = 'maas_unreachable' where status = 'failed_retryable'");
    const visit = await stage().operator("/", { expects: /^409$/ });
    const { page } = visit;
    const what = "Resolve 3 operations with maas_unreachable";
    await visit.button(what).click();
    const dialog = page.getByRole("dialog", { name: what });
    await dialog.getByText("3 operations", { exact: true }).waitFor();
    expect(await barriers(page, "{}"), "the preview").toEqual([]);
    // Another person was quicker with one of the operations, which no event tells here.
    await query("update workflows set status = 'cancelled', completed_at = now() where id = $1", [
      "dddddddd-0000-4000-8000-000000000069",
    ]);
    await dialog.getByLabel("Reason, for the audit").fill("MAAS is back");
    await visit.lookAway();
    expect(visit.written).toEqual([]);
    await dialog.getByRole("button", { name: "Retry 3 operations" }).click();
    const refusal = dialog.getByRole("alert");
    // The group leaves the page, and the dialog stays, which says what the hub has refused.
    await visit.button(what).waitFor({ state: "hidden" });
    await refusal.getByText("The verb is given to 2 operations, and not to 1.").waitFor();
    expect(await refusal.getByRole("listitem").count()).toBe(1);
    expect(visit.written.filter((request) => request.endsWith("/retry")).length).toBe(3);
  });

  it("begins a rotation of the hub's keys, and abandons it", async () => {
    const visit = await stage().operator("/keys");
    const what = "the rotation of the hub's keys";
    await visit.act("Begin", what, { reason: "a person left" });
    await visit.heading("Announced").waitFor();
    await visit.page.getByText("rotation under way").waitFor();
    await visit.act("Abandon", what, { reason: "not today" });
    await visit.button(`Begin ${what}`).waitFor();
  });

  it("rotates a token, whose new secret is shown once, and revokes it", async () => {
    const { body } = await stage().api.ask("POST", "/api/v1/admin/tokens", {
      name: "rack-planner",
      role: "operator",
      expires_in_days: 30,
    });
    const visit = await stage().operator(`/tokens/${body.id}`);
    const { page } = visit;
    await visit.act("Rotate", "the token rack-planner");
    await page.getByText("Copy the new token now: it is shown once").waitFor();
    const secret = (await page.getByText(/^mstr_/).textContent()) ?? "";
    expect(secret).not.toBe(body.token);
    await visit.act("Revoke", "the token rack-planner", { reason: "the planner is gone" });
    await page.getByText("revoked", { exact: true }).first().waitFor();
    await page.goto(`${visit.url}/console/tokens`);
    await page.getByRole("link", { name: "rack-planner" }).waitFor();
    expect(await page.content()).not.toContain(secret);
  });

  it("rotates the secret of a webhook, which is shown once, and deletes the webhook", async () => {
    const url = "https://hooks.example/muster";
    const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
    const { body } = await stage().api.ask("POST", "/api/v1/admin/webhooks", { url, secret });
    // The screen may ask once more for what it has just deleted, before the list takes its place.
    const visit = await stage().operator(`/webhooks/${body.id}`, { expects: /^404$/ });
    const { page } = visit;
    await visit.button(`Disable the webhook ${url}`).click();
    await stage().changeVersion(`/webhooks/${body.id}`, { active: false });
    // What the hub writes when it disables a webhook by itself.
    await query("insert into domain_events (type, subject, data) values ('webhook.disabled', $1, '{}')", [
      `webhooks/${body.id}`,
    ]);
    // The button becomes the one of the opposite verb, and the open dialog does not.
    await page.getByRole("button", { name: `Enable the webhook ${url}`, includeHidden: true }).waitFor();
    const dialog = page.getByRole("dialog", { name: `Disable the webhook ${url}` });
    await dialog.getByRole("button", { name: "Disable", exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await visit.act("Rotate the secret", `of ${url}`);
    await page.getByText("Copy the new signing secret now: it is shown once").waitFor();
    expect(await page.getByText(/^whsec_/).textContent()).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    await visit.act("Delete", `the webhook ${url}`);
    await page.getByText("The hub has no webhook yet").waitFor();
    expect(visit.written).toEqual([
      `POST /api/v1/admin/webhooks/${body.id}/rotate-secret`,
      `DELETE /api/v1/admin/webhooks/${body.id}`,
    ]);
  });
}
