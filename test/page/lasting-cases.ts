import { expect, it } from "vitest";
import { DARK } from "./dark-site.ts";
import { seedLargeFleet } from "./large-fleet.ts";
import { LIVE } from "./page-world.ts";
import type { Stage } from "./stage.ts";

const SELECTED = "getSelection().toString()";
const FOCUSED = "document.activeElement.ariaLabel ?? document.activeElement.id";

export function lastingCases(stage: () => Stage): void {
  it("keeps focus, selection, scroll position and an open dialogue during a refresh", async () => {
    const { pool } = stage().world.database.database;
    const visit = await stage().operator();
    const { page } = visit;
    await visit.row("Nodes", DARK.known).getByRole("link").click();
    await visit.heading(`Node ${DARK.known}`).waitFor();
    await page.setViewportSize({ width: 1280, height: 400 });
    await visit.button(`drain ${DARK.known}`).focus();
    await page.evaluate(`kept = [...document.querySelectorAll("dd")].find((one) => one.textContent === "10.9.1.1");
      getSelection().selectAllChildren(kept); scrollTo(0, 300)`);
    const rename = (text: string) =>
      pool.query(
        "update node_maas_state set drift_details = jsonb_set(drift_details, '{message}', $1) where drift_acknowledged ->> 'by' = 'ann'",
        [JSON.stringify(text)],
      );
    await rename("It is another fault now");
    await visit.says(visit.section("Does not agree with its machine in MAAS"), "It is another fault now");
    expect(await page.evaluate(SELECTED)).toBe("10.9.1.1");
    expect(await page.evaluate(FOCUSED)).toBe(`drain ${DARK.known}`);
    expect(await page.evaluate("scrollY")).toBe(300);
    expect(await page.evaluate("kept.isConnected"), "what stays the same is the same element").toBe(true);

    await visit.button(`drain ${DARK.known}`).click();
    await page.keyboard.type("half a rea");
    await rename("And a third one");
    await visit.says(visit.section("Does not agree with its machine in MAAS"), "And a third one");
    await visit.looksAgain(1);
    await page.keyboard.type("son");
    expect(await page.getByRole("dialog").getByLabel("Reason, for the audit").inputValue()).toBe("half a reason");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    expect(await page.evaluate(FOCUSED)).toBe(`drain ${DARK.known}`);
    expect(visit.written).toEqual([]);
  });

  it("shows that the hub is away and the age of its data, and continues when the hub is back", async () => {
    const [hub] = stage().world.rig.hubs;
    const visit = await stage().operator({ expects: /^net::ERR_|^5\d\d$/ });
    const start = await hub?.keepDown();
    const away = visit.page.getByRole("status").filter({ hasText: "The hub does not answer." });
    await visit.says(away, "The page shows the state of");
    await visit.row("Nodes", LIVE.good).waitFor();
    await visit.row("Nodes", DARK.known).getByRole("link").click();
    // The notice of the operators' page that the hub does not answer is visible even before the click on a node. The test waits until the list of
    // nodes has disappeared from the operators' page.
    await visit.row("Nodes", LIVE.good).waitFor({ state: "detached" });
    await visit.says(away, "The hub does not answer.");
    expect(await visit.page.getByRole("main").textContent()).not.toContain(LIVE.good);
    start?.();
    await visit.heading(`Node ${DARK.known}`).waitFor();
    await away.waitFor({ state: "detached" });
    await visit.act(`drain ${DARK.known}`, "after the hub's death");
    await visit.page.getByRole("link", { name: "See how it goes" }).waitFor();
  });

  it("stays usable with thousands of nodes, and says what it leaves out", async () => {
    const { world } = stage();
    const last = await seedLargeFleet(world.database.database.pool, 3_000);
    const visit = await stage().operator();
    await visit.says(visit.section("Nodes"), "Only the first 100 are shown here.");
    await visit.says(
      visit.section("Onboardings that need a person"),
      "Only the first 100 that are failed retryable are shown here.",
    );
    await visit.says(visit.section("Nodes and their machines in MAAS"), "Only the first 100 are shown here.");
    expect(await visit.section("Nodes").getByRole("row").count()).toBe(101);
    await visit.section("Nodes").getByRole("link", { name: "the next 100" }).click();
    const list = visit.section("Nodes");
    await visit.page.getByRole("link", { name: "From the beginning" }).waitFor();
    await visit.page.getByRole("link", { name: "The next 100" }).click();
    await list.getByRole("link", { name: "fleet-00250" }).waitFor();
    expect(await list.getByRole("row").count()).toBe(101);

    await visit.page.getByRole("search").getByLabel("Host").fill(last);
    await visit.page.keyboard.press("Enter");
    await visit.page.getByRole("main").getByRole("link", { name: last }).click();
    await visit.says(visit.section("Does not agree with its machine in MAAS"), `${last} is powered off`);
    await visit.page.getByRole("link", { name: "Muster" }).click();
    await visit
      .section("Onboardings that need a person")
      .getByRole("link", { name: "All that are failed retryable" })
      .click();
    await visit.heading("Onboardings, status failed retryable").waitFor();
  });
}
