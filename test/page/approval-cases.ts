import { randomUUID } from "node:crypto";
import { beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { apiToken } from "../support/api-token.ts";
import { insertSite } from "../support/site.ts";
import { MARKUP } from "./dark-site.ts";
import { barriers } from "./reader-cases.ts";
import type { Stage } from "./stage.ts";
import type { Visit, VisitOptions } from "./visit.ts";

/** Hosts of a site whose profile asks for a second person before somebody takes a host out of the fleet. */
const GUARDED = ["guard-1", "guard-2", "guard-3"] as const;
const WAITING = "Requests that need a second person";

export function approvalCases(stage: () => Stage): void {
  const tokens = new Map<string, string>();
  const ids = new Map<string, string>();
  const query = (text: string, values: unknown[] = []) => stage().world.database.database.pool.query(text, values);

  beforeAll(async () => {
    const { database } = stage().world;
    for (const name of ["ann", "bob"]) tokens.set(name, await apiToken(database, { name, role: "operator" }));
    const siteId = await insertSite(database.database.db, { name: "guard-dc3" });
    const { id: profile } = await stage().world.rig.api.call(
      z.looseObject({ id: z.uuid() }),
      "POST",
      `/api/v1/admin/maas-sites/${siteId}/profiles`,
      { name: "guarded" },
    );
    // The API refuses the field on a hub without sign-in by a provider.
    await query("update maas_site_profiles set second_person = '{full_decommission}' where id = $1", [profile]);
    await query("update maas_sites set default_profile_id = $2 where id = $1", [siteId, profile]);
    for (const hostname of GUARDED) {
      ids.set(hostname, randomUUID());
      await query(
        `insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, status, onboarding_mode)
          values ($1, $2, $3, 'mi300x.192g.8gpu', 8, 'guard-1', 'retired', 'maas')`,
        [ids.get(hostname), hostname, siteId],
      );
    }
  });

  const visitOf = async (who: string, options: VisitOptions = {}): Promise<Visit> => {
    const visit = await stage().stranger(options);
    await visit.logIn(tokens.get(who) ?? "");
    return visit;
  };
  const requestName = async (hostname: string): Promise<string> => {
    const found = await query("select id from approvals where params ->> 'id' = $1", [ids.get(hostname)]);
    return `request ${found.rows[0]?.id.slice(0, 8)} of ann`;
  };
  /** Ann wants to remove a node, and is told that a second person must approve the request. */
  async function askToRemove(hostname: string, reason: string): Promise<{ ann: Visit; name: string }> {
    const ann = await visitOf("ann", { expects: /^409$/ });
    await ann.at(`#/nodes/${ids.get(hostname)}`, `Node ${hostname}`);
    await ann.act(`remove ${hostname}`, reason);
    await ann.says(asked(ann), `remove ${hostname} needs a second person`, "waits for a second person until");
    return { ann, name: await requestName(hostname) };
  }
  const asked = (visit: Visit) => visit.page.getByRole("status").filter({ hasText: "needs a second person" });

  it("asks for a second person, shows how the request stands, and carries it out once it is approved", async () => {
    const { ann, name } = await askToRemove(GUARDED[0], `sold ${MARKUP}`);
    expect(await barriers(ann.page, "{}"), "the note").toEqual([]);
    const bob = await visitOf("bob");
    await bob.says(bob.row(WAITING, GUARDED[0]), "ann", "pending", `Reason: sold ${MARKUP}`);
    await bob.row(WAITING, GUARDED[0]).getByRole("link").click();
    await bob.heading(name.replace("r", "R")).waitFor();
    await bob.says(bob.section("The request"), `sold ${MARKUP}`);
    expect(await bob.buttons()).toEqual([`approve ${name}`, `refuse ${name}`]);
    await bob.act(`approve ${name}`, "I was in the rack");
    await bob.says(bob.section(name.replace("r", "R")), "approved by bob", "I was in the rack");

    // The note stays on every view of the tab in which Ann has asked.
    await ann.page.getByRole("link", { name: "Muster" }).click();
    await ann.says(asked(ann), "approved by bob", "You can carry it out once");
    await asked(ann)
      .getByRole("button", { name: `carry out ${name}` })
      .click();
    const dialog = ann.page.getByRole("dialog", { name: `carry out ${name}`, exact: true });
    await ann.says(dialog, GUARDED[0]);
    expect(await dialog.getByLabel("Reason, for the audit").isVisible()).toBe(false);
    await dialog.getByRole("button").first().click();
    await ann.page.getByRole("link", { name: "See how it goes" }).click();
    await ann.heading(`Decommission of ${GUARDED[0]}`).waitFor();
    await asked(ann).waitFor({ state: "detached" });
    await ann.at("#/approvals", "Requests that are over");
    await ann.says(ann.row("Requests that are over", GUARDED[0]), "used", "carried out", "approved by bob");
    expect(ann.written).toEqual([1, 2].map(() => `POST /api/v1/admin/nodes/${ids.get(GUARDED[0])}/remove`));
  });

  it("says why nobody approves their own request, and withdraws it", async () => {
    const { ann, name } = await askToRemove(GUARDED[1], "scrapped");
    await ann.page.getByRole("link", { name: "Approvals" }).click();
    const row = ann.row(WAITING, GUARDED[1]);
    await ann.says(row, "ann (you)", "guard-dc3", "You asked for this request, so somebody else must approve it.");
    const approve = row.getByRole("button", { name: `approve ${name}` });
    expect(await approve.getAttribute("aria-disabled")).toBe("true");
    await approve.focus();
    await ann.page.keyboard.press("Enter");
    expect(await ann.page.getByRole("dialog").count()).toBe(0);
    for (const [colorScheme, rules] of [
      ["light", "{}"],
      ["dark", '{ runOnly: ["color-contrast"] }'],
    ] as const) {
      await ann.page.emulateMedia({ colorScheme });
      expect(await barriers(ann.page, rules), colorScheme).toEqual([]);
    }
    await ann.page.setViewportSize({ width: 360, height: 700 });
    expect(await ann.page.evaluate("document.documentElement.scrollWidth")).toBe(360);
    await ann.page.setViewportSize({ width: 1280, height: 900 });
    await row.getByRole("button", { name: `withdraw ${name}` }).click();
    const dialog = ann.page.getByRole("dialog", { name: `withdraw ${name}`, exact: true });
    await dialog.getByLabel("Reason, for the audit").fill("a mistake");
    await dialog.getByRole("button").first().click();
    await ann.says(ann.row("Requests that are over", GUARDED[1]), "withdrawn by ann", "a mistake");
  });

  it("shows the requester why a second person has refused, and a viewer no buttons", async () => {
    const { ann, name } = await askToRemove(GUARDED[2], "too old");
    const viewer = await stage().stranger();
    await viewer.logIn(stage().world.tokens.viewer);
    await viewer.row(WAITING, GUARDED[2]).waitFor();
    expect(await viewer.buttons()).toEqual([]);
    const bob = await visitOf("bob");
    await bob.act(`refuse ${name}`, "it is in use");
    await bob.heading(WAITING).waitFor({ state: "detached" });
    await ann.says(asked(ann), "refused by bob", "it is in use");
    expect(await asked(ann).getByRole("button").count()).toBe(0);
    await ann.page.getByRole("link", { name: "Muster" }).click();
    await asked(ann).waitFor({ state: "detached" });
    await ann.at("#/list/approvals", WAITING);
    await ann.page.getByRole("navigation", { name: "By status" }).getByRole("link", { name: "refused" }).click();
    await ann.says(ann.section(`${WAITING}, state refused`), "it is in use");
  });
}
