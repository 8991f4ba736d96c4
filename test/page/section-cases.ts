import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { Drift, ReconciliationStatus } from "../../shared/api/reconciliation.ts";
import { NodeId } from "../../shared/ids.ts";
import { NODE_STATUSES } from "../../shared/node-status.ts";
import { WORKFLOW_STATUSES } from "../../shared/workflow-status.ts";
import { storeUnsignedRecord } from "../support/unsigned-record.ts";
import { DARK, MARKUP } from "./dark-site.ts";
import { LIVE } from "./page-world.ts";
import type { Stage } from "./stage.ts";

const words = (text: string): string => text.replaceAll("_", " ");
const RECONCILIATION = "/api/v1/admin/reconciliation";
const OVERVIEW = [
  "Breakers that are open",
  "Onboardings that need a person",
  "Decommissions that need a person",
  "Nodes and their machines in MAAS",
  "Onboardings under way",
  "Decommissions under way",
  "Sites",
  "Nodes",
  "Newest batches",
  "Onboardings that ended last",
  "Decommissions that ended last",
];

export function sectionCases(stage: () => Stage): void {
  it("has its sections in the order of urgency, and shows every node as the API does", async () => {
    await stage().world.active();
    const visit = await stage().operator();
    expect(await visit.page.getByRole("main").getByRole("heading").allInnerTexts()).toEqual(OVERVIEW);
    const nodes = await stage().world.rig.api.nodes();
    expect(nodes.map((node) => node.hostname)).toEqual([
      LIVE.good,
      DARK.gone,
      DARK.known,
      DARK.mended,
      DARK.retired,
      DARK.odd,
    ]);
    for (const node of nodes)
      await visit.says(
        visit.row("Nodes", node.hostname),
        words(node.status),
        node.schedulable ? "yes" : node.unschedulable_reasons.join("; "),
        node.sku_id,
        node.agent_version ?? "",
      );
    await visit.says(visit.page.getByRole("banner"), "agents connected here: 1");
  });

  it("shows each onboarding's state: why it failed and what comes next, what it waits for, or that it ended", async () => {
    const visit = await stage().operator();
    const onboardings = await stage().world.rig.api.onboardings();
    const refused = onboardings.find((one) => one.hostname === LIVE.refused);
    await visit.says(
      visit.row("Onboardings that need a person", LIVE.refused),
      "failed manual intervention",
      "commission node",
      `${refused?.failure_class}/${refused?.error_code}`,
      refused?.error_message ?? "no message",
      `Next: ${refused?.next_action}`,
    );
    await visit.says(visit.section("Onboardings that need a person"), "1 x input config error");
    await visit.saysAsNow(visit.row("Onboardings under way", LIVE.waiting), async () => {
      const waiting = (await stage().world.rig.api.onboardings()).find((one) => one.hostname === LIVE.waiting);
      return ["running", words(waiting?.current_stage ?? "nowhere"), waiting?.waiting_for ?? "nothing"];
    });
    await visit.says(visit.row("Onboardings that ended last", LIVE.good), "completed");
    await visit.says(visit.section("Newest batches"), "needs a person");

    await visit.page.getByRole("link", { name: LIVE.refused }).click();
    await visit.heading(`Onboarding of ${LIVE.refused}`).waitFor();
    await visit.says(visit.section("Why it failed"), `No: ${MARKUP}`, `Next: ${refused?.next_action}`);
    expect(await visit.page.title()).toBe(`Onboarding of ${LIVE.refused} - Muster`);
    const detail = await stage().world.rig.api.onboarding(refused?.onboarding_id ?? "");
    expect(await visit.section("History").getByRole("row").count()).toBe(detail.events.length + 1);
  });

  it("shows drift with its actions, open breakers, and a site that cannot be reached", async () => {
    const { api } = stage().world.rig;
    const visit = await stage().operator();
    const drifts = await api.all(Drift, `${RECONCILIATION}/drift`);
    expect(drifts.map((one) => one.hostname)).toEqual([DARK.gone, DARK.mended, DARK.odd]);
    for (const { hostname, drift_details: details } of drifts)
      await visit.says(
        visit.row("Nodes and their machines in MAAS", hostname),
        `${details?.rule} ${details?.message}`,
        details?.severity ?? "",
        details?.held_back ?? "",
      );
    const offered = (await visit.buttons()).filter((name) => /^(acknowledge|return)/.test(name));
    expect(offered).toEqual([
      `acknowledge ${DARK.gone}`,
      `acknowledge ${DARK.mended}`,
      `return to service ${DARK.mended}`,
      `acknowledge ${DARK.odd}`,
    ]);
    for (const kind of ["offline", "quarantine"])
      await visit.says(
        visit.section("Breakers that are open").getByRole("row").filter({ hasText: kind }),
        DARK.site,
        "10 nodes within ten minutes: 3 have changed status, 7 wait; of 12 in service, 5 may",
      );
    await visit.saysAsNow(visit.section("Nodes and their machines in MAAS"), async () => {
      const status = await api.call(ReconciliationStatus, "GET", `${RECONCILIATION}/status`);
      return [`${status.ok} agree, ${status.drifted} do not, ${status.acknowledged} acknowledged`];
    });
    await visit.says(visit.row("Sites", DARK.site), "cannot be polled", "secret_missing", "never");
    await visit.says(visit.row("Sites", "demo-dc1"), "active", "none");
  });

  it("shows a node with its drift, and who acknowledged the drift and why", async () => {
    const visit = await stage().operator();
    await visit.page.getByRole("link", { name: DARK.known }).click();
    await visit.heading(`Node ${DARK.known}`).waitFor();
    await visit.says(
      visit.section("Does not agree with its machine in MAAS"),
      "hardware_failure",
      "Acknowledged by ann",
      MARKUP,
    );
    const offered = ["drain", "cordon", "quarantine", "re-enroll", "storage cleanup", "full decommission"];
    expect(await visit.buttons()).toEqual(offered.map((verb) => `${verb} ${DARK.known}`));
    await visit.says(visit.section("As MAAS sees it"), "Deployed", "10.9.1.1");

    await visit.at("#/", "Sites");
    await visit.row("Nodes", LIVE.good).getByRole("link").click();
    await visit.heading(`Node ${LIVE.good}`).waitFor();
    await visit.says(visit.row("Conditions", "agent.connected"), "True");
    await visit.says(visit.row("Onboardings of it", LIVE.good), "completed");
    await visit.says(visit.section("History"), "active");
    expect(await visit.heading("Does not agree with its machine in MAAS").count()).toBe(0);
  });

  it("shows the sanitization records of all nodes and of one node, with the tenant's name as text", async () => {
    const { rig, database } = stage().world;
    const known = (await rig.api.nodes()).find((one) => one.hostname === DARK.known);
    const nodeId = NodeId.parse(known?.id);
    const allocation = {
      id: randomUUID(),
      tenant: MARKUP,
      login_user: "ann",
      granted_root: true,
      from: null,
      to: null,
    };
    const recordId = await storeUnsignedRecord(database, nodeId, { allocation });
    const visit = await stage().operator();
    await visit.page.getByRole("link", { name: "Records" }).click();
    await visit.heading("Sanitization records").waitFor();
    const facts = ["incomplete", MARKUP, "soft reset", "in place", "hub only", recordId];
    await visit.says(visit.row("Sanitization records", DARK.known), ...facts);
    await visit.row("Sanitization records", DARK.known).getByRole("link").click();
    await visit.heading(`Node ${DARK.known}`).waitFor();
    await visit.says(visit.row("Sanitization records of it", DARK.known), ...facts);
    expect(await visit.page.locator("img").count()).toBe(0);
  });

  it("shows markup in a name, a reason or a message as text", async () => {
    const visit = await stage().operator();
    await visit.row("Nodes", DARK.odd).getByRole("link", { name: DARK.odd, exact: true }).click();
    await visit.heading(`Node ${DARK.odd}`).waitFor();
    expect(await visit.page.title()).toBe(`Node ${DARK.odd} - Muster`);
    await visit.button(`remove ${DARK.odd}`).click();
    await visit.says(visit.page.getByRole("dialog"), `remove ${DARK.odd}`);
    expect(await visit.page.locator("img").count()).toBe(0);
    await visit.page.keyboard.press("Escape");
  });

  it("finds a host by its name, and shows that another name has no host", async () => {
    const visit = await stage().operator();
    const find = async (host: string) => {
      await visit.page.getByRole("search").getByLabel("Host").fill(host);
      await visit.page.getByRole("button", { name: "Find" }).click();
    };
    await find(DARK.gone.toUpperCase());
    await visit.says(visit.section(`Nodes, hostname ${DARK.gone}`), "quarantined");
    await find("dark-nowhere");
    await visit.says(visit.section("Nodes, hostname dark-nowhere"), "None.");
    await visit.page.goBack();
    await visit.says(visit.section(`Nodes, hostname ${DARK.gone}`), "quarantined");
    await visit.page.getByRole("link", { name: "Muster" }).click();
    await visit.heading("Sites").waitFor();
  });

  it.each([
    ["nodes", "Nodes", NODE_STATUSES],
    ["onboardings", "Onboardings", WORKFLOW_STATUSES],
    ["decommissions", "Decommissions", WORKFLOW_STATUSES],
  ] as const)("filters the list of %s by each status", async (list, title, statuses) => {
    const visit = await stage().operator();
    await visit.page.goto(`${visit.url}/#/list/${list}`);
    const choices = visit.page.getByRole("navigation", { name: "By status" }).getByRole("link");
    await choices.first().waitFor();
    expect((await choices.allInnerTexts()).sort()).toEqual(["all", ...statuses.map(words)].sort());
    await choices.filter({ hasText: words(statuses[0]) }).click();
    await visit.heading(`${title}, status ${words(statuses[0])}`).waitFor();
  });
}
