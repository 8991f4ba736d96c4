import { sql } from "../../hub/db/orm.ts";
import { startDecommissionBatch } from "../../hub/workflows/decommission/start-decommission-batch.ts";
import { startOnboardingBatch } from "../../hub/workflows/onboarding/start-onboarding.ts";
import { DecommissionBatchCreate } from "../../shared/api/batches.ts";
import { MOST_NODES } from "../../shared/api/node-selection.ts";
import { BatchCreate } from "../../shared/api/onboardings.ts";
import type { NodeId, ProfileId, SiteId } from "../../shared/ids.ts";
import { SKU, seedSite } from "../support/onboarding-rig.ts";
import { addNodeInService } from "../support/site-nodes.ts";
import { type Bench, withDatabase } from "./bench-hubs.ts";
import type { Figure } from "./figure.ts";

const BY = { actor: "bench", role: "admin", requestId: "bench" } as const;

/** Measures how long the one transaction lasts in which all operations of a batch begin. */
export async function measureBatches(stateDir: string): Promise<Figure[]> {
  return withDatabase(stateDir, async (bench) => {
    const site = await seedSite(bench, "http://127.0.0.1:1/MAAS");
    const figures: Figure[] = [await onboardingsOf(bench, site)];
    for (const mode of ["drain", "soft_reset", "reimage"] as const)
      figures.push(await decommissionsOf(bench, site.siteId, mode));
    return figures;
  });
}

interface Site {
  readonly siteId: SiteId;
  readonly profileId: ProfileId;
}

async function took(run: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await run();
  return performance.now() - from;
}

const figure = (what: string, ms: number, hosts: number): Figure => ({
  name: `begin of a batch of ${hosts} ${what}`,
  value: ms / hosts,
  unit: "ms per host",
  note: `one transaction of ${(ms / 1000).toFixed(2)} s`,
});

async function onboardingsOf({ database }: Bench, { siteId, profileId }: Site): Promise<Figure> {
  const nodes = Array.from({ length: MOST_NODES }, (_, n) => ({
    hostname: `new-${n}`,
    ipmi_ip: `10.9.${Math.floor(n / 250)}.${(n % 250) + 1}`,
  }));
  const request = BatchCreate.parse({ site_id: siteId, profile_id: profileId, sku_id: SKU, nodes });
  const ms = await took(() => database.inTx((tx) => startOnboardingBatch(tx, { request, requestedBy: "bench" })));
  return figure("onboardings", ms, nodes.length);
}

async function decommissionsOf(
  { database }: Bench,
  siteId: SiteId,
  mode: "drain" | "soft_reset" | "reimage",
): Promise<Figure> {
  const ids: NodeId[] = [];
  await database.inTx(async (tx) => {
    for (let n = 0; n < MOST_NODES; n += 1)
      ids.push(await addNodeInService(tx, { siteId, hostname: `${mode.replaceAll("_", "-")}-${n}` }));
    await tx.execute(sql`
      insert into node_maas_state (node_id, site_id, maas_system_id, ipmi_ip)
      select id, site_id, hostname, '10.8.' || (row_number() over () / 250) || '.' || (row_number() over () % 250)
      from nodes where hostname like ${`${mode.replaceAll("_", "-")}-%`}`);
    await tx.execute(sql`
      with made as materialized (
        select gen_random_uuid() as id, n.id as node_id, n.site_id, n.hostname
        from nodes n where hostname like ${`${mode.replaceAll("_", "-")}-%`}),
      w as (insert into workflows (id, kind, status, stage, input, completed_at)
        select id, 'onboard', 'completed', 'wait_for_agent_enrollment', '{}', now() from made)
      insert into node_onboardings (onboarding_id, node_id, site_id, profile_id, sku_id, hostname, ipmi_ip)
      select id, node_id, site_id, (select id from maas_site_profiles limit 1), ${SKU}, hostname, '10.0.0.1' from made`);
  });
  await database.db.execute(sql`analyze`);
  const options = { drain: {}, soft_reset: { storage_cleanup: "none" }, reimage: { erase: "secure" } }[mode];
  const operation = { mode, reason: "bench", ...options };
  const request = DecommissionBatchCreate.parse({ site_id: siteId, operation, node_ids: ids });
  const ms = await took(() => database.inTx((tx) => startDecommissionBatch(tx, request, BY)));
  return figure(`decommissions (${mode})`, ms, ids.length);
}
