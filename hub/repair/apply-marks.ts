import { HEALTH_TEMPLATES, type HealthAlert } from "../../shared/health-report.ts";
import { listHealthOverrides } from "../db/queries/node-health-overrides.ts";
import type { RepairCase } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { removeHealthOverride, setHealthOverride } from "../node/health-override.ts";
import { MARK_TEMPLATES, type MarkTemplate, marksOf } from "./case-moves.ts";

const MOST_MESSAGE = 1024;
const MOST_TENANT_MESSAGE = 512;
const OUT_FOR_REPAIR = HEALTH_TEMPLATES.OutForRepair.source;
/**
 * The author of each health override that a repair case sets begins with `repair:`. The prefix `repair:` marks the health overrides of every repair
 * case, including those that a node has inherited from the host's earlier node.
 */
const BY_REPAIR = "repair:";

/** Returns the health alert of a repair mark. The alert's text for tenants has the wording of NVIDIA NICo. */
function alertOf(template: MarkTemplate, { category, summary, finding }: RepairCase): HealthAlert {
  const { id, target, classifications } = HEALTH_TEMPLATES[template].alert;
  const message = `${category}: ${summary}${finding === null ? "" : `. ${finding}`}`;
  const tenantMessage =
    template === "RequestRepair"
      ? `RepairSystem: Node ready for repair - ${summary}`
      : `TenantReportedIssue: ${summary}`;
  return {
    id,
    target,
    message: message.slice(0, MOST_MESSAGE),
    tenant_message: template === "OutForRepair" ? null : tenantMessage.slice(0, MOST_TENANT_MESSAGE),
    classifications: [...classifications],
  };
}

/**
 * Gives the node exactly the repair marks (health overrides) that its repair case requires, whatever repair marks the node had before. If a person
 * has already set one of the required repair marks, the repair case takes that mark over. Only a health override `out-for-repair` that a person has
 * set stays as it is, because it may have another cause; only a person removes it.
 */
export async function applyMarks(
  tx: Tx,
  row: RepairCase,
  said: { readonly by: string; readonly reason: string },
): Promise<void> {
  const wanted = marksOf(row.mode, row.state);
  if (wanted === null) return;
  const setBy = `${BY_REPAIR}${row.id}`;
  const stand = new Map((await listHealthOverrides(tx, [row.nodeId])).map((one) => [one.source, one]));
  for (const template of MARK_TEMPLATES) {
    const { source } = HEALTH_TEMPLATES[template];
    const now = stand.get(source);
    const isOfPerson = now !== undefined && !now.setBy.startsWith(BY_REPAIR);
    if (isOfPerson && source === OUT_FOR_REPAIR) continue;
    if (wanted.includes(template)) {
      const alerts = [alertOf(template, row)];
      if (now?.setBy === setBy && JSON.stringify(now.alerts) === JSON.stringify(alerts)) continue;
      const since = now === undefined ? {} : { since: now.since };
      const reason = `repair ${row.id} (${row.state})`;
      await setHealthOverride(tx, { nodeId: row.nodeId, target: null, source, alerts, reason, setBy, ...since });
    } else if (now !== undefined) await removeHealthOverride(tx, row.nodeId, source, said);
  }
}

/**
 * True if a health override from the source is a repair mark; while a repair case is open, only the verbs of the repair case change its repair marks.
 */
export const isRepairMark = (source: string): boolean =>
  MARK_TEMPLATES.some((template) => HEALTH_TEMPLATES[template].source === source);
