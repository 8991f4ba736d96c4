import type { NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { TERMINAL_WORKFLOW_STATUSES } from "../../../shared/workflow-status.ts";
import { and, eq, notInArray, sql } from "../orm.ts";
import {
  type MaasPowerCredentialOverride,
  maasPowerCredentialOverrides,
  nodeDecommissions,
  workflows,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

const changedAt = sql<string>`${maasPowerCredentialOverrides.updatedAt}::text`;

export type SiteLogin = Pick<
  MaasPowerCredentialOverride,
  "id" | "selectorType" | "selectorValue" | "vaultPath" | "status"
> & {
  /** The time when the row of the BMC login last changed, with PostgreSQL's microseconds. */
  readonly changedAt: string;
  /** True if somebody wrote or changed the BMC login after the decommission was requested. */
  readonly isNewer: boolean;
};

/** Reads all BMC login overrides of the site; the secret store may still contain the login of a disabled override. */
export const loginsOfSite = (db: Db, siteId: SiteId, decommissionId: WorkflowId): Promise<SiteLogin[]> => {
  const t = maasPowerCredentialOverrides;
  return db
    .select({
      id: t.id,
      selectorType: t.selectorType,
      selectorValue: t.selectorValue,
      vaultPath: t.vaultPath,
      status: t.status,
      changedAt,
      isNewer: sql<boolean>`${t.updatedAt} > ${nodeDecommissions.createdAt}`,
    })
    .from(t)
    .innerJoin(nodeDecommissions, eq(nodeDecommissions.decommissionId, decommissionId))
    .where(eq(t.siteId, siteId));
};

/** Locks the row of a BMC login override, and returns its status and the time of its last change. */
export async function lockLogin(
  tx: Tx,
  id: string,
): Promise<(Pick<SiteLogin, "status" | "changedAt"> & Pick<SiteLogin, "selectorType" | "selectorValue">) | null> {
  const t = maasPowerCredentialOverrides;
  const [row] = await tx
    .select({ status: t.status, changedAt, selectorType: t.selectorType, selectorValue: t.selectorValue })
    .from(t)
    .where(eq(t.id, id))
    .for("update");
  return row ?? null;
}

/** Names the site's other hosts to which a BMC login with the given selector may belong: living nodes, and hosts of unfinished onboardings. */
export async function otherHostsOf(
  db: Db | Tx,
  { siteId, nodeId }: { readonly siteId: SiteId; readonly nodeId: NodeId },
  { selectorType, selectorValue: value }: Pick<SiteLogin, "selectorType" | "selectorValue">,
): Promise<string[]> {
  const ofNode = {
    hostname: sql`n.hostname = ${value}`,
    ipmi_ip: sql`exists (select from node_maas_state s where s.node_id = n.id and s.ipmi_ip = ${value})`,
    pxe_mac: sql`exists (select from node_onboardings o where o.node_id = n.id and o.pxe_mac = ${value})`,
  }[selectorType];
  const ofOnboarding = { hostname: sql`o.hostname`, ipmi_ip: sql`o.ipmi_ip`, pxe_mac: sql`o.pxe_mac` }[selectorType];
  const over = sql.param([...TERMINAL_WORKFLOW_STATUSES]);
  const { rows } = await db.execute<{ told: string }>(sql`
    select 'node ' || n.hostname || ' (' || n.id || ')' as told from nodes n
    where n.site_id = ${siteId} and n.id <> ${nodeId} and n.status <> 'deleted' and ${ofNode}
    union select 'onboarding ' || o.onboarding_id || ' of ' || o.hostname from node_onboardings o join workflows w on w.id = o.onboarding_id
    where o.site_id = ${siteId} and o.node_id <> ${nodeId} and ${ofOnboarding} = ${value} and not w.status = any(${over}::text[])
    order by told limit 5`);
  return rows.map(({ told }) => told);
}

/** Returns the unfinished decommission that removes the BMC login from the secret store now, or null if no decommission does. */
export async function removerOfLogin(db: Db, overrideId: string): Promise<WorkflowId | null> {
  const removing = JSON.stringify([{ outcome: "removing", login: { id: overrideId } }]);
  const [row] = await db
    .select({ id: nodeDecommissions.decommissionId })
    .from(nodeDecommissions)
    .innerJoin(workflows, eq(workflows.id, nodeDecommissions.decommissionId))
    .where(
      and(
        sql`${nodeDecommissions.secrets} @> ${removing}::jsonb`,
        notInArray(workflows.status, [...TERMINAL_WORKFLOW_STATUSES]),
      ),
    );
  return row?.id ?? null;
}
