import type { z } from "zod";
import type { NodeDetail } from "../../../shared/api/nodes.ts";
import type { NodeRow } from "../../db/queries/node-reads.ts";
import { readinessOf, toldLacking } from "../../node/readiness-verdict.ts";
import { readinessFactsOf } from "../../node/scheduling-facts.ts";

export function toReadiness(row: NodeRow): z.input<typeof NodeDetail>["readiness"] {
  const facts = readinessFactsOf(row);
  const { ready, lacking } = readinessOf(facts, row.conditions);
  return {
    ready,
    policy: {
      profile_id: row.policy?.profileId ?? null,
      profile_name: row.policy?.profileName ?? null,
      groups: facts.policy,
    },
    generation_began_at: facts.begunAt.toISOString(),
    lacking: lacking.map((one) => ({
      type: one.type,
      wants: one.wants,
      kind: one.kind,
      group: one.group,
      group_kind: one.of,
      status: one.said?.status ?? null,
      reason: one.said?.reason ?? null,
      message: toldLacking(one),
      since: one.since.toISOString(),
      until: one.until?.toISOString() ?? null,
      next_action: one.nextAction,
    })),
  };
}
