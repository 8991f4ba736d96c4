import { expect, it } from "vitest";
import { barriers } from "../barriers.ts";
import { type ConsoleStage, NODES } from "./console-stage.ts";
import { SITE } from "./screens.ts";

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
    await page.getByRole("button", { name: "Status 1 chosen" }).click();
    const menu = page.getByRole("dialog", { name: "Status 1 chosen" });
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

  it("lists the nodes with one health override, and removes it from them", async () => {
    const { pool } = stage().api.database.database;
    await pool.query(
      `insert into node_health_overrides (node_id, source, reason, set_by)
         select id, 'after-test', 'the database was restored', 'restore' from nodes where hostname in ('c000u00011', 'c000u00012', 'c000u00013')`,
    );
    const { rows } = await pool.query("select node_id from node_health_overrides where source = 'after-test'");
    const visit = await stage().operator(`/nodes/${rows[0].node_id}?tab=use`);
    const { page } = visit;
    await page.goto(`${visit.url}/console/nodes?health_override=after-test`);
    await page.getByText(`${rows.length} nodes`, { exact: true }).waitFor();
    await page.getByRole("checkbox", { name: "Select all loaded rows" }).check();
    await page.getByRole("button", { name: "Do", exact: true }).click();
    await page.getByRole("menuitem", { name: "Remove override" }).click();
    const dialog = page.getByRole("dialog", { name: `Remove override ${rows.length} nodes` });
    expect(await dialog.getByLabel("Source of the override").inputValue()).toBe("after-test");
    await dialog.getByLabel("Reason, for the audit").fill("each host was looked at");
    expect(await barriers(page, "{}"), "the dialog").toEqual([]);
    await page.keyboard.press("Enter");
    await dialog.getByText("would change").first().waitFor();
    await dialog.getByRole("button", { name: /^Remove override/ }).click();
    await page.getByText(`Remove override: done for ${rows.length} nodes, refused for 0.`).waitFor();
    await page.getByText("The filter leaves out all nodes").waitFor();
    await page.getByRole("button", { name: "Clear all" }).click();
    await page.getByText(`${NODES} nodes`, { exact: true }).waitFor();
  });

  it("loads all RoCE rows of a site while a person scrolls", async () => {
    const { pool } = stage().api.database.database;
    await pool.query(
      `insert into maas_roce_assignments (id, site_id, hostname, interface, ipv4_cidr)
         select gen_random_uuid(), $1, 'roce' || lpad(n::text, 4, '0'), 'rail0', '172.16.' || (n / 200) || '.' || (n % 200 + 1) || '/31' from generate_series(1, 250) n`,
      [SITE],
    );
    const visit = await stage().operator(`/sites/${SITE}`);
    const { page } = visit;
    await page.getByText("roce0001", { exact: true }).waitFor();
    const last = page.getByText("roce0250", { exact: true });
    await page.getByRole("region", { name: "The RoCE rows as a table" }).focus();
    while ((await last.count()) === 0) await page.keyboard.press("End");
    await last.waitFor();
    await pool.query("delete from maas_roce_assignments where site_id = $1 and hostname like 'roce%'", [SITE]);
  });

  it("shows the racks of one site after it is chosen, and loads no other nodes", async () => {
    const visit = await stage().operator("/nodes?status=active,offline");
    const { page } = visit;
    const asked: URL[] = [];
    page.on("request", (request) => asked.push(new URL(request.url())));
    const lists = () => asked.filter(({ pathname }) => pathname === "/api/v1/admin/nodes");
    await page.getByText("Racks", { exact: true }).click();
    await visit.heading("Racks of which site?").waitFor();
    expect(lists()).toEqual([]);
    await page.getByRole("button", { name: "dc0", exact: true }).click();
    const rack = page.getByRole("table", { name: "r0 19 nodes" });
    await rack.getByRole("row", { name: "3 c000u00002 offline" }).waitFor();
    await rack.getByRole("row", { name: "42 - 40 no node" }).waitFor();
    expect(query(page.url())).toBe(`?status=active,offline&view=racks&site_id=${SITE}&room=A`);
    await page.getByText("The filter leaves out nodes").waitFor();
    expect(new Set(lists().map(({ searchParams }) => searchParams.get("site_id")))).toEqual(new Set([SITE]));
    expect(lists().length).toBeLessThanOrEqual(3);
    await page.setViewportSize({ width: 420, height: 900 });
    await page.reload();
    await rack.waitFor();
    expect(await page.getByRole("table", { name: /^r\d / }).count()).toBeLessThan(6);
    await page.getByRole("region", { name: "Racks side by side" }).focus();
    while ((await rack.count()) > 0) await page.keyboard.press("ArrowRight");
    await page.getByRole("table", { name: "r6 1 node" }).waitFor();
  });

  it("says why it cannot show racks", async () => {
    const visit = await stage().operator("/nodes?view=racks&site_id=nowhere", { expects: /^4\d\d$/ });
    await visit.page.getByRole("alert").getByRole("button", { name: "Try again" }).waitFor();
  });

  it("marks a unit that two nodes claim, lists nodes without a unit, and follows events", async () => {
    const move = (hostname: string, place: object) =>
      stage().change("/nodes/locations", { site_id: SITE, items: [{ hostname, room: "A", rack: "r0", ...place }] });
    const visit = await stage().operator(`/nodes?view=racks&site_id=${SITE}`);
    const { page } = visit;
    const rack = page.getByRole("table", { name: /^r0 / });
    await rack.getByRole("row", { name: "5 c000u00004 active" }).waitFor();
    await page.getByText("Every node here has a rack and a unit.").waitFor();
    await move("c000u00004", { unit: 3 });
    await move("c000u00006", {});
    const { body } = await stage().api.ask("GET", "/api/v1/admin/nodes?search=c000u00004");
    await stage().change(`/nodes/${body.items[0].id}/cordon`, { reason: "two hosts with one label" });
    await rack
      .getByRole("row", { name: "3 Several nodes have this unit c000u00002 offline c000u00004 active" })
      .waitFor();
    const unplaced = page.getByRole("region", { name: "The nodes without a place", exact: true });
    await unplaced.getByRole("row", { name: /c000u00006/ }).waitFor();
    expect(await barriers(page, "{}"), "two nodes in one unit").toEqual([]);
    // The room that the person reads stays, although the site has two rooms now.
    await move("c000u00008", { room: "B" });
    await stage().change(`/nodes/${body.items[0].id}/uncordon`, { reason: "the label is right again" });
    await rack.getByRole("link", { name: "c000u00008" }).waitFor({ state: "detached" });
    expect(await visit.heading("Racks of which room?").count()).toBe(0);
    await page.getByText("dc0, room A").waitFor();
    await move("c000u00008", { unit: 9 });
    await move("c000u00004", { unit: 5 });
    await move("c000u00006", { unit: 7 });
    await page.getByRole("button", { name: "Refresh" }).click();
    await rack.getByRole("row", { name: "7 c000u00006 active" }).waitFor();
    await rack.getByRole("link", { name: "c000u00004" }).click();
    await visit.heading("c000u00004").waitFor();
  });

  it("asks for the room if a site has nodes in several, and shows the nodes that are in none", async () => {
    const move = (room: string | null) =>
      stage().change("/nodes/locations", {
        site_id: SITE,
        items: [{ hostname: "c001u00044", rack: "r1", unit: 5, ...(room === null ? {} : { room }) }],
      });
    await move(null);
    const visit = await stage().operator(`/nodes?view=racks&site_id=${SITE}`);
    const { page } = visit;
    await page.getByRole("button", { name: "No room", exact: true }).click();
    await page.getByRole("table", { name: "r1 1 node" }).getByRole("row", { name: "5 c001u00044 active" }).waitFor();
    expect(await page.getByRole("table", { name: /^r\d / }).count()).toBe(1);
    expect(await page.getByText(/^\d+ nodes$/).count(), "a count of all rooms").toBe(0);
    await page.getByRole("button", { name: "Another place" }).click();
    await page.getByRole("button", { name: "dc0", exact: true }).click();
    await page.getByRole("button", { name: "A", exact: true }).click();
    await page.getByRole("table", { name: "r1 19 nodes" }).waitFor();
    expect(query(page.url())).toBe(`?view=racks&site_id=${SITE}&room=A`);
    await move("A");
  });
}
