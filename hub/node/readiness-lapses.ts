import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { recordNodeEvents } from "../db/queries/node-events.ts";
import { type ReadinessRow, readReadiness } from "../db/queries/node-readiness.ts";
import type { Lapse } from "../db/queries/readiness-policies.ts";
import type { Tx } from "../db/tx.ts";
import { type Lacking, readinessOf, toldLacking } from "./readiness-verdict.ts";
import { readinessFactsOf } from "./scheduling-facts.ts";

interface Told {
  readonly node: ReadinessRow["node"];
  readonly lacking: Lacking & { readonly kind: Lapse["kind"] };
}

/**
 * Records that a time limit of a readiness policy has passed for a node, in the node's history and as a domain event. The hub does not record a
 * passed time limit in a policy's group `any` if another condition of the group is met, because the group is then met. Returns the number of recorded
 * lapses.
 */
export async function tellLapses(tx: Tx, lapses: readonly Lapse[]): Promise<number> {
  const rows = await readReadiness(tx, [...new Set(lapses.map(({ nodeId }) => nodeId))]);
  const told = rows.flatMap((row) => toldAbout(row, lapses));
  await recordNodeEvents(
    tx,
    told.map(({ node, lacking }) => ({
      nodeId: node.id,
      type: "readiness_lapsed",
      owner: "hub",
      message: toldLacking(lacking),
      details: { condition: lacking.type, kind: lacking.kind },
    })),
  );
  for (const { node, lacking } of told)
    await recordDomainEvent(tx, {
      type: "node.readiness.lapsed",
      subject: `nodes/${node.id}`,
      data: {
        node_id: node.id,
        hostname: node.hostname,
        condition: lacking.type,
        kind: lacking.kind,
        since: lacking.since.toISOString(),
        message: toldLacking(lacking),
        next_action: lacking.nextAction,
      },
    });
  return told.length;
}

/**
 * Returns the conditions that a node lacks to be ready because a time limit of its readiness policy has passed, each condition and kind of limit
 * once.
 */
function toldAbout(row: ReadinessRow, lapses: readonly Lapse[]): Told[] {
  const found = new Map<string, Told>();
  for (const lacking of readinessOf(readinessFactsOf(row), row.conditions).lacking) {
    const { type, kind } = lacking;
    if (kind !== "overdue" && kind !== "too_old") continue;
    const lapsed = lapses.some((one) => one.nodeId === row.node.id && one.type === type && one.kind === kind);
    if (lapsed) found.set(`${type} ${kind}`, { node: row.node, lacking: { ...lacking, kind } });
  }
  return [...found.values()];
}
