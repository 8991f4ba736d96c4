import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { keepWatches } from "../../../hub/db/queries/maas-site-watches.ts";
import { readWorkflow } from "../../../hub/db/queries/workflows.ts";
import {
  domainEvents,
  maasCredentialUses,
  maasPowerCredentialOverrides,
  maasSites,
  maasSiteWatches,
  workflows,
} from "../../../hub/db/schema/index.ts";
import { SECRET_PATHS } from "../../../hub/secrets/port.ts";
import { warnOfCredentials } from "../../../hub/workflows/onboarding/credential-warnings.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import { SITE_BMC_PASSWORD, SITE_BMC_USER } from "../../fakes/maas/state/site.ts";
import { nextVerbOf } from "../../properties/converge.ts";
import { Driver } from "../../properties/drive.ts";
import { type OnboardingRig, startOnboardingRig } from "../../support/onboarding-rig.ts";

let rig: OnboardingRig;
let driver: Driver;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 6 });
  driver = new Driver(rig.test, workflowsOf(rig.services), (id) => rig.playAgent(id));
});
afterAll(() => rig?.close());

const db = () => rig.services.db;
const usesOf = async (path: string) =>
  (await db().select().from(maasCredentialUses).where(eq(maasCredentialUses.path, path)))[0];
const warnings = async () => {
  const rows = await db().select().from(domainEvents).where(eq(domainEvents.type, "site.credential.warning"));
  return rows.map(({ data }) => data as { credential: string; reason: string; override_id: string | null });
};
const override = async (hostname: string, pass: string) => {
  const id = crypto.randomUUID();
  const vaultPath = SECRET_PATHS.powerOverride(rig.siteId, id);
  await rig.secrets.write(vaultPath, { user: SITE_BMC_USER, pass });
  await db()
    .insert(maasPowerCredentialOverrides)
    .values({ id, siteId: rig.siteId, selectorType: "hostname", selectorValue: hostname, vaultPath });
  return { id, vaultPath };
};
const warn = () => warnOfCredentials(rig.services.inTx);

/** Onboardings record the use of each BMC login, and the hub warns operators of unused and failing logins (lifecycle 12, question 4). */
describe("the BMC logins of a site", () => {
  it("are recorded as used and working by completed onboardings", async () => {
    const { id } = await rig.start(1);
    expect((await driver.drive(id)).status).toBe("completed");
    const site = await usesOf(SECRET_PATHS.defaultPower(rig.siteId));
    expect(site?.lastUsedAt).toBeInstanceOf(Date);
    expect(site?.lastWorkedAt).toBeInstanceOf(Date);
    expect(site?.lastFailedAt).toBeNull();
    expect(await warn()).toBe(0);
  });

  it("cause one warning when a power action fails, from one of several hubs, until they work again", async () => {
    const { id: overrideId, vaultPath } = await override("host-2", SITE_BMC_PASSWORD);
    const { id } = await rig.start(2);
    rig.maas.sim.faults.add({ match: { op: "commission" }, kind: "bmc_500", times: 20 });
    const end = await driver.drive(id);
    expect(end).toMatchObject({ failureCode: "power_action_failed" });
    expect(await usesOf(vaultPath)).toMatchObject({ lastFailureCode: "power_action_failed" });
    const told = await Promise.all([warn(), warn(), warn()]);
    expect(told.toSorted()).toEqual([0, 0, 1]);
    expect(await warn()).toBe(0);
    expect(await warnings()).toEqual([
      expect.objectContaining({ credential: "power_override", reason: "failing", override_id: overrideId }),
    ]);
    rig.maas.sim.faults.clear();
    await driver.verb(id, nextVerbOf(end));
    expect((await driver.drive(id)).status).toBe("completed");
    expect(await warn()).toBe(0);
    expect(await usesOf(vaultPath)).toMatchObject({ warnedOf: null });
  });

  it("cause a warning when an override's secret is gone", async () => {
    const { vaultPath } = await override("host-3", SITE_BMC_PASSWORD);
    await rig.secrets.remove(vaultPath);
    const { id } = await rig.start(3);
    expect(await driver.drive(id)).toMatchObject({ failureCode: "secret_missing" });
    expect(await usesOf(vaultPath)).toMatchObject({ lastFailureCode: "secret_missing" });
    expect(await warn()).toBe(1);
  });

  it("cause a warning when an override is unused for 30 days, unless it or its site is disabled", async () => {
    const { id, vaultPath } = await override("nobody", "x");
    const old = { updatedAt: sql`now() - interval '31 days'` };
    const t = maasPowerCredentialOverrides;
    expect(await warn()).toBe(0);
    await db()
      .update(t)
      .set({ ...old, status: "disabled" })
      .where(eq(t.id, id));
    expect(await warn()).toBe(0);
    await db()
      .update(t)
      .set({ ...old, status: "active" })
      .where(eq(t.id, id));
    await db().update(maasSites).set({ status: "disabled" }).where(eq(maasSites.id, rig.siteId));
    expect(await warn()).toBe(0);
    await db().update(maasSites).set({ status: "active" }).where(eq(maasSites.id, rig.siteId));
    expect(await warn()).toBe(1);
    expect(await usesOf(vaultPath)).toMatchObject({ warnedOf: "unused" });
    expect((await warnings()).at(-1)).toMatchObject({ reason: "unused", override_id: id });
  });

  it("cause a warning when the site's token is refused, but not when MAAS is away", async () => {
    const watch = (code: string) =>
      db()
        .insert(maasSiteWatches)
        .values({ siteId: rig.siteId, consecutiveFailures: 2, lastErrorCode: code, lastErrorAt: new Date() })
        .onConflictDoUpdate({ target: maasSiteWatches.siteId, set: { consecutiveFailures: 2, lastErrorCode: code } });
    await watch("unreachable");
    expect(await warn()).toBe(0);
    await watch("unauthorized");
    expect(await warn()).toBe(1);
    expect((await warnings()).at(-1)).toMatchObject({ credential: "maas_token", reason: "failing" });
    await db().update(maasSiteWatches).set({ consecutiveFailures: 0 }).where(eq(maasSiteWatches.siteId, rig.siteId));
    expect(await warn()).toBe(0);
  });
});

/** A disabled site accepts no new onboarding, but its running onboardings continue (lifecycle 3.5). */
describe("a disabled site", () => {
  const disable = (status: "active" | "disabled") =>
    db().update(maasSites).set({ status }).where(eq(maasSites.id, rig.siteId));
  const watched = async () =>
    (await keepWatches(db(), crypto.randomUUID(), 3)).some(({ siteId }) => siteId === rig.siteId);

  it("accepts no new onboarding, finishes the running ones, and is watched until they end", async () => {
    const begun = await rig.start(4);
    const stage = async () => (await readWorkflow(db(), begun.id))?.stage;
    while ((await stage()) !== "commission_node") await driver.step(begun.id);
    await disable("disabled");
    await expect(rig.start(5)).rejects.toMatchObject({ code: "site_disabled" });
    expect(await watched()).toBe(true);
    expect((await driver.drive(begun.id)).status).toBe("completed");
    await db().update(workflows).set({ status: "cancelled" }).where(sql`${workflows.status} in ('pending', 'running')`);
    expect(await watched()).toBe(false);
    await disable("active");
    expect(await watched()).toBe(true);
    expect((await rig.start(5)).id).toBeTruthy();
  });
});
