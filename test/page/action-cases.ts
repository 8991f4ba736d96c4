import { expect, it } from "vitest";
import { z } from "zod";
import { Authority } from "../../shared/api/authority.ts";
import { DecommissionBatchCreated } from "../../shared/api/batches.ts";
import { Decommission } from "../../shared/api/decommissions.ts";
import { Breaker, Drift } from "../../shared/api/reconciliation.ts";
import { until } from "../support/until.ts";
import { DARK } from "./dark-site.ts";
import { LIVE } from "./page-world.ts";
import type { Stage } from "./stage.ts";
import type { Visit } from "./visit.ts";

const RECONCILIATION = "/api/v1/admin/reconciliation";

export function actionCases(stage: () => Stage): void {
  const api = () => stage().world.rig.api;
  const nodeOf = async (hostname: string) => {
    const node = (await api().nodes()).find((one) => one.hostname === hostname);
    if (node === undefined) throw new Error(`there is no node ${hostname}`);
    return node;
  };
  const toNode = async (visit: Visit, hostname: string): Promise<void> => {
    await visit.at(`#/nodes/${(await nodeOf(hostname)).id}`, `Node ${hostname}`);
  };
  const onboardingOf = async (hostname: string) => (await api().onboardings()).find((one) => one.hostname === hostname);
  const decommissions = () => api().all(Decommission, "/api/v1/admin/decommissions");

  it("asks before it acts, names the host and the effect, and does nothing after a no", async () => {
    const visit = await stage().operator();
    for (const hostname of [DARK.retired, DARK.gone]) {
      await toNode(visit, hostname);
      for (const name of await visit.buttons()) {
        const effect = await visit.button(name).getAttribute("title");
        expect(effect).toMatch(/^[A-Z].{20}/);
        await visit.button(name).click();
        const dialog = visit.page.getByRole("dialog", { name, exact: true });
        await visit.says(dialog, hostname, `${effect}.`);
        await dialog.getByLabel("Reason, for the audit").fill("not yet");
        await dialog.getByRole("button", { name: "No", exact: true }).click();
        await dialog.waitFor({ state: "hidden" });
      }
    }
    expect(visit.written).toEqual([]);
  });

  it("acknowledges a drift, returns a node to service, and confirms both", async () => {
    const visit = await stage().operator();
    await visit.act(`acknowledge ${DARK.gone}`, "known since Monday");
    await visit.says(visit.page.getByRole("status").filter({ hasText: DARK.gone }), "the hub has taken it");
    await visit.row("Nodes and their machines in MAAS", DARK.gone).waitFor({ state: "detached" });
    const known = await api().all(Drift, `${RECONCILIATION}/drift?include_acknowledged=true`);
    expect(known.find((one) => one.hostname === DARK.gone)?.acknowledged).toMatchObject({
      by: "admin",
      reason: "known since Monday",
    });
    await visit.act(`return to service ${DARK.mended}`, "the fan is new");
    await visit.row("Nodes and their machines in MAAS", DARK.mended).waitFor({ state: "detached" });
    expect((await nodeOf(DARK.mended)).status).toBe("active");
  });

  it("shows why the hub refuses, and for which host", async () => {
    const visit = await stage().operator({ expects: /^409$/ });
    await visit.button(`acknowledge ${DARK.odd}`).click();
    await visit.page.getByLabel("Reason, for the audit").fill("known");
    const { id } = await nodeOf(DARK.odd);
    const body = { action: "acknowledge", reason: "somebody was faster" };
    await api().call(z.unknown(), "POST", `${RECONCILIATION}/drift/${id}/resolve`, body);
    await visit.page.getByRole("dialog").getByRole("button", { name: "acknowledge" }).click();
    const alert = visit.page.getByRole("alert");
    await visit.says(alert, `acknowledge ${DARK.odd}: Node ${DARK.odd} has no drift to acknowledge`);
    await visit.looksAgain(1);
    await visit.says(alert, "has no drift to acknowledge");
  });

  it("resets one breaker, and accepts the drift behind another", async () => {
    const visit = await stage().operator();
    await visit.act(`reset ${DARK.site}, offline`, "the network is back");
    await visit.act(`accept drift ${DARK.site}, quarantine`, "they were all moved");
    await visit.heading("Breakers that are open").waitFor({ state: "detached" });
    const { items } = await api().call(z.object({ items: z.array(Breaker) }), "GET", `${RECONCILIATION}/breakers`);
    const found = items.map(({ kind, state, reset_reason: reason }) => ({ kind, state, reason }));
    expect(found).toContainEqual({ kind: "offline", state: "closed", reason: "the network is back" });
    expect(found).toContainEqual({ kind: "quarantine", state: "accepting", reason: "they were all moved" });
  });

  it("drains and reactivates a host, and links to the decommission", async () => {
    const visit = await stage().operator();
    await toNode(visit, LIVE.good);
    const verbs = ["drain", "cordon", "quarantine", "storage cleanup", "full decommission"];
    expect(await visit.buttons()).toEqual(verbs.map((verb) => `${verb} ${LIVE.good}`));
    await visit.act(`cordon ${LIVE.good}`, "a fan is loud");
    await visit.act(`uncordon ${LIVE.good}`, "it is quiet");
    await visit.button(`cordon ${LIVE.good}`).waitFor();
    await visit.act(`quarantine ${LIVE.good}`, "it burns");
    await visit.act(`lift quarantine ${LIVE.good}`, "it does not");
    await visit.button(`quarantine ${LIVE.good}`).waitFor();
    await visit.act(`drain ${LIVE.good}`, "a new rack");
    await visit.page.getByRole("link", { name: "See how it goes" }).click();
    await visit.heading(`Decommission of ${LIVE.good}`).waitFor();
    await visit.says(visit.section(`Decommission of ${LIVE.good}`), "completed");
    await visit.says(visit.section("Record"), "a new rack");
    await toNode(visit, LIVE.good);
    for (const verb of ["activate", "release", "remove"]) await visit.button(`${verb} ${LIVE.good}`).waitFor();
    expect(await visit.buttons()).not.toContain(`drain ${LIVE.good}`);
    await visit.says(visit.row("Decommissions of it", LIVE.good), "drain", "completed");
    await visit.act(`activate ${LIVE.good}`, "it stays here");
    await visit.button(`drain ${LIVE.good}`).waitFor();
    expect((await nodeOf(LIVE.good)).status).toBe("active");
  });

  it("removes a node by force when its agent is gone for good", async () => {
    const visit = await stage().operator();
    await toNode(visit, DARK.retired);
    await visit.act(`remove ${DARK.retired}`, "scrapped");
    await visit.page.getByRole("link", { name: "See how it goes" }).click();
    await visit.heading(`Decommission of ${DARK.retired}`).waitFor();
    await visit.act(`force ${DARK.retired}`, "burnt down");
    await visit.says(visit.section(`Decommission of ${DARK.retired}`), "completed");
    expect(await visit.buttons()).toEqual([]);
    const [one] = (await decommissions()).filter(({ hostname }) => hostname === DARK.retired);
    expect(one).toMatchObject({ mode: "remove", reason: "scrapped", forced_reason: "burnt down", forced_by: "admin" });
    expect((await nodeOf(DARK.retired)).status).toBe("deleted");
  });

  it("shows the verbs that an onboarding allows, the recommended one first", async () => {
    const visit = await stage().operator();
    const waiting = await onboardingOf(LIVE.waiting);
    await visit.at(`#/onboardings/${waiting?.onboarding_id}`, `Onboarding of ${LIVE.waiting}`);
    expect(await visit.buttons()).toEqual([`cancel ${LIVE.waiting}`, `mark manual intervention ${LIVE.waiting}`]);
    await visit.act(`mark manual intervention ${LIVE.waiting}`, "wait for me");
    await visit.heading("Why it failed").waitFor();
    const buttons = await visit.buttons();
    const next = (await onboardingOf(LIVE.waiting))?.next_verb ?? "";
    expect(buttons[0]).toBe(`${next.replaceAll("_", " ")} ${LIVE.waiting}`);
    expect([...buttons].sort()).toEqual(
      ["adopt", "cancel", "mark manual intervention", "rerun", "restart clean", "resume", "retry"].map(
        (verb) => `${verb} ${LIVE.waiting}`,
      ),
    );
    await visit.act(`cancel ${LIVE.waiting}`, "not this one");
    await visit.says(visit.section(`Onboarding of ${LIVE.waiting}`), "cancelled");
    expect(await visit.buttons()).toEqual([]);
  });

  it("recovers a batch's failed hosts, and shows that the host becomes active", async () => {
    const visit = await stage().operator();
    await visit.row("Newest batches", "needs a person").getByRole("link").click();
    await visit.says(visit.row("What failed", LIVE.refused), "input_config_error/maas_rejected_input", "rerun");
    await visit.act("recover 1 host of this batch", "MAAS was told");
    await until("the host to be taken up", async () =>
      (await onboardingOf(LIVE.refused))?.status.startsWith("failed") ? undefined : true,
    );
    await visit.says(visit.row("Its hosts", LIVE.refused), "completed");
    expect((await nodeOf(LIVE.refused)).status).toBe("active");
  });

  it("rotates the hub's keys: shows how many hosts know the next keys, abandons one rotation and finishes another", async () => {
    const visit = await stage().operator();
    await visit.page.getByRole("link", { name: "Keys", exact: true }).click();
    await visit.heading("The hub's keys").waitFor();
    const keys = visit.section("The hub's keys");
    const begin = "begin the rotation of the hub's keys";
    expect(await visit.buttons()).toEqual([begin]);
    await visit.act(begin, "a person left");
    await visit.saysAsNow(keys, async () => {
      const { hosts, informed } = await api().call(Authority, "GET", "/api/v1/admin/authority");
      return ["rotation under way", `${informed} of ${hosts} hosts know the next keys, of generation 2`];
    });
    await visit.button("finish the rotation of the hub's keys").waitFor();
    expect(await visit.buttons()).toEqual(
      ["finish", "abandon"].map((verb) => `${verb} the rotation of the hub's keys`),
    );
    await visit.act("abandon the rotation of the hub's keys", "not today");
    await visit.says(keys, "in force");
    await visit.act(begin, "now it is");
    await visit.says(keys, "hosts know the next keys, of generation 3");
    await visit.act("finish the rotation of the hub's keys", "all know them");
    await visit.says(keys, "in force");
    await visit.says(visit.section("In force"), "generation 3");
    await visit.button(begin).waitFor();
  });

  it("enrolls a node again whose identity two hosts used, with a command that is shown once", async () => {
    const { pool } = stage().world.database.database;
    const { id } = await nodeOf(DARK.gone);
    await pool.query(
      `insert into node_conditions (node_id, type, status, reason, message, generation, source, observed_at)
        select id, 'agent.identity', 'False', 'TwoUsers', 'two addresses', generation, 'hub', now() from nodes where id = $1`,
      [id],
    );
    const visit = await stage().operator();
    await toNode(visit, DARK.gone);
    await visit.act(`re-enroll ${DARK.gone}`, "the copy is off");
    const told = visit.page.getByRole("status").filter({ hasText: DARK.gone });
    await visit.says(told, "the hub has taken it", "Run this as root on that host", "curl");
    await visit.at("#/", "Sites");
    await told.waitFor({ state: "detached" });
    expect(visit.written).toEqual([`POST /api/v1/admin/nodes/${id}/re-enroll`]);
  });

  it("shows a health override and the erase that lifts it, removes it, and shows it in the node's lifecycle", async () => {
    const { pool } = stage().world.database.database;
    const { id } = await nodeOf(DARK.gone);
    await pool.query(
      "insert into node_health_overrides (node_id, source, reason, set_by) values ($1, 'disk-erase', 'not erased', 'operator:ann')",
      [id],
    );
    const visit = await stage().operator();
    await toNode(visit, DARK.gone);
    const row = visit.row("Health overrides", "disk-erase");
    await visit.says(row, "not erased", "operator:ann", "an erase with evidence (secure or stronger), or a person");
    await visit.act("remove health override disk-erase", "the disks were replaced");
    await visit.heading("Health overrides").waitFor({ state: "detached" });
    expect((await api().node(id)).health_overrides).toEqual([]);
    await visit.page.getByRole("link", { name: "Its whole lifecycle" }).click();
    await visit.says(visit.row("Lifecycle", "health override removed"), "event", "the disks were replaced");
  });

  it("pauses and resumes a batch, and names its refused and failed nodes with their reasons", async () => {
    const { pool } = stage().world.database.database;
    const { site_id: siteId } = await nodeOf(DARK.retired);
    await pool.query(
      `insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, status, onboarding_mode)
        select gen_random_uuid(), 'batch-' || n, $1, 'mi300x.192g.8gpu', 8, 'dark-1',
          case when n = 4 then 'retired' else 'quarantined' end, 'maas' from generate_series(1, 4) n`,
      [siteId],
    );
    const operation = { mode: "drain", reason: "the rack moves" };
    const request = { site_id: siteId, operation, filter: { hostname_prefix: "batch-" }, expected_count: 4 };
    const path = "/api/v1/admin/decommissions/batch";
    const { batch_id: batch } = await api().call(DecommissionBatchCreated, "POST", path, request);
    const visit = await stage().operator();
    await visit.at(`#/decommission-batches/${batch}`, "Nodes that were refused");
    await visit.says(visit.row("Nodes that were refused", "batch-4"), "conflict", "is retired");
    await visit.act("pause this batch", "lunch");
    const main = visit.page.getByRole("main");
    await visit.says(main, "by admin: lunch", "Next: When the reason for the pause is over, resume the batch");
    await pool.query(
      `update workflows set status = 'failed_manual_intervention', completed_at = now(), wake_at = null, lease_owner = null,
        fence = fence + 1, failure_class = 'upstream_transient', failure_code = 'maas_timeout', failure_message = 'no answer'
        where id = (select id from workflows where batch_id = $1 order by id limit 1)`,
      [batch],
    );
    await visit.says(visit.row("What failed", "maas_timeout"), "batch-", ": no answer");
    await visit.act("resume this batch", "the meal is over");
    await visit.button("resume this batch").waitFor({ state: "detached" });
    await visit.act("cancel what is under way of this batch", "enough");
    // The dialog for confirmation closes before the operators' page sends its request.
    await until("the page's third request", () => (visit.written.length >= 3 ? true : undefined));
    expect(visit.written).toEqual(
      ["pause", "resume", "cancel"].map((verb) => `POST /api/v1/admin/decommission-batches/${batch}/${verb}`),
    );
  });

  it("releases the machine of a host to MAAS", async () => {
    const visit = await stage().operator();
    const { id } = await nodeOf(LIVE.good);
    await api().call(z.unknown(), "POST", `/api/v1/admin/nodes/${id}/drain`, { reason: "the lease ends" });
    await toNode(visit, LIVE.good);
    await visit.act(`release ${LIVE.good}`, "back to the pool");
    await visit.page.getByRole("link", { name: "See how it goes" }).click();
    await visit.says(visit.section("History"), "release maas node", "succeeded");
    await visit.says(visit.section("Record"), "back to the pool");
    const machine = (await stage().world.maas.machines()).find(({ hostname }) => hostname === LIVE.good);
    expect(machine?.status, "Ready in MAAS").toBe(4);
  });
}
