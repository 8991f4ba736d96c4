import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { maasSiteProfiles, maasSites, skus } from "../../../hub/db/schema/index.ts";
import { SECRET_PATHS } from "../../../hub/secrets/port.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import { nextVerbOf } from "../../properties/converge.ts";
import { Driver } from "../../properties/drive.ts";
import { type OnboardingRig, SKU, startOnboardingRig } from "../../support/onboarding-rig.ts";

/**
 * The preflight of an onboarding finds each missing setting of a site before the onboarding touches a machine (lifecycle 4.14). Each missing setting
 * of a site has its own error code. After a person has corrected a missing setting, the verb that the failure recommends continues the onboarding.
 */
interface Case {
  readonly name: string;
  readonly ends: readonly [cls: string, code: string];
  readonly says: RegExp;
  breaks(): Promise<unknown> | unknown;
  mends(): Promise<unknown> | unknown;
}

let rig: OnboardingRig;
let driver: Driver;
let boxes = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 20 });
  driver = new Driver(rig.test, workflowsOf(rig.services), (id) => rig.playAgent(id));
});
afterEach(() => rig.maas.sim.faults.clear());
afterAll(() => rig?.close());

const db = () => rig.services.db;
const site = (values: Partial<typeof maasSites.$inferInsert>) => () =>
  db().update(maasSites).set(values).where(eq(maasSites.id, rig.siteId));
const profile = (status: "active" | "disabled") => () =>
  db().update(maasSiteProfiles).set({ status }).where(eq(maasSiteProfiles.id, rig.profileId));
const sku = (status: "active" | "disabled") => () => db().update(skus).set({ status }).where(eq(skus.id, SKU));
const answers = (path: string, code: number, body: string) => () =>
  rig.maas.sim.faults.add({ match: { path }, kind: "status", code, body, times: 1e6 });
const calm = () => rig.maas.sim.faults.clear();
let kept: Readonly<Record<string, string>> = {};

const CASES: readonly Case[] = [
  {
    name: "the site is disabled",
    ends: ["input_config_error", "site_disabled"],
    says: /Site dc1 is disabled/,
    breaks: site({ status: "disabled" }),
    mends: site({ status: "active" }),
  },
  {
    name: "the profile is disabled",
    ends: ["input_config_error", "profile_disabled"],
    says: /Profile gpu of site dc1/,
    breaks: profile("disabled"),
    mends: profile("active"),
  },
  {
    name: "the SKU is disabled",
    ends: ["input_config_error", "sku_unknown"],
    says: /SKU .* is disabled/,
    breaks: sku("disabled"),
    mends: sku("active"),
  },
  {
    name: "the site has no deploy password",
    ends: ["site_capability_missing", "credentials_missing"],
    says: /lacks the deploy password/,
    breaks: site({ deployPasswordVaultPath: null }),
    mends: () => site({ deployPasswordVaultPath: SECRET_PATHS.deployPassword(rig.siteId) })(),
  },
  {
    name: "the site has no MAAS token",
    ends: ["site_capability_missing", "credentials_missing"],
    says: /lacks the MAAS token/,
    breaks: site({ apiTokenVaultPath: null }),
    mends: () => site({ apiTokenVaultPath: SECRET_PATHS.maasToken(rig.siteId) })(),
  },
  {
    name: "MAAS does not answer",
    ends: ["upstream_transient", "maas_unavailable"],
    says: /503/,
    breaks: answers("", 503, "Service Unavailable"),
    mends: calm,
  },
  {
    name: "MAAS refuses the token",
    ends: ["site_capability_missing", "maas_token_rejected"],
    says: /token/i,
    breaks: answers("users/", 401, "Authorization Error: 'Invalid consumer.'"),
    mends: calm,
  },
  {
    name: "the token's user is no administrator",
    ends: ["site_capability_missing", "maas_forbidden"],
    says: /not an administrator/,
    breaks: answers(
      "users/",
      200,
      JSON.stringify({
        username: "bob",
        email: "",
        is_superuser: false,
        is_local: true,
        resource_uri: "/MAAS/api/2.0/users/bob/",
      }),
    ),
    mends: calm,
  },
  {
    name: "the image is not there",
    ends: ["site_capability_missing", "image_missing"],
    says: /has no image/,
    breaks: answers("boot-resources/", 200, "[]"),
    mends: calm,
  },
  {
    name: "no BMC login is known",
    ends: ["site_capability_missing", "credentials_missing"],
    says: /No BMC login is known/,
    breaks: site({ defaultPowerCredsVaultPath: null }),
    mends: () => site({ defaultPowerCredsVaultPath: SECRET_PATHS.defaultPower(rig.siteId) })(),
  },
  {
    name: "the BMC login's secret was removed",
    ends: ["site_capability_missing", "secret_missing"],
    says: /secret path/,
    breaks: () => {
      kept = rig.secrets.entries.get(SECRET_PATHS.defaultPower(rig.siteId)) ?? {};
      rig.secrets.entries.delete(SECRET_PATHS.defaultPower(rig.siteId));
    },
    mends: () => rig.secrets.write(SECRET_PATHS.defaultPower(rig.siteId), kept),
  },
];

describe("the preflight", () => {
  it.each(CASES)(
    "ends the onboarding before a machine is touched when $name",
    async ({ ends, says, breaks, mends }) => {
      const before = { ...rig.maas.sim.region.state.requests };
      boxes += 1;
      const { id } = await rig.start(boxes);
      await breaks();
      const end = await driver.drive(id);
      const [cls, code] = ends;
      expect(end, end.failureMessage ?? "").toMatchObject({ failureClass: cls, failureCode: code });
      expect(end.failureMessage).toMatch(says);
      expect((end.nextAction ?? "").length).toBeGreaterThan(20);
      const asked = Object.entries(rig.maas.sim.region.state.requests).filter(
        ([name, count]) => count > (before[name] ?? 0),
      );
      expect(
        asked.filter(([name]) => !name.startsWith("GET")),
        "nothing was changed in MAAS",
      ).toEqual([]);
      await mends();
      await driver.verb(id, nextVerbOf(end));
      expect((await driver.drive(id)).status).toBe("completed");
    },
  );

  it("leaves no subject held after the ended onboardings", async () => {
    const { rows } = await db().execute<{ open: number }>(sql`
      select count(*)::int as open from workflow_subjects`);
    expect(rows[0]?.open).toBe(0);
  });
});
