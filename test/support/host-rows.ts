import { and, eq } from "../../hub/db/orm.ts";
import { agentSessions, nodeConditions, nodes } from "../../hub/db/schema/index.ts";
import type { Db } from "../../hub/db/tx.ts";
import type { NodeId } from "../../shared/ids.ts";
import { until } from "./until.ts";

export function hostRows(db: () => Db) {
  const sessionOf = async (nodeId: NodeId) =>
    (await db().select().from(agentSessions).where(eq(agentSessions.nodeId, nodeId)))[0];
  return {
    sessionOf,
    statusOf: async (nodeId: NodeId) => (await db().select().from(nodes).where(eq(nodes.id, nodeId)))[0]?.status,
    conditionOf: async (nodeId: NodeId, type: string) =>
      (
        await db()
          .select()
          .from(nodeConditions)
          .where(and(eq(nodeConditions.nodeId, nodeId), eq(nodeConditions.type, type)))
      )[0],
    sessionState: (nodeId: NodeId, state: "open" | "closed") =>
      until(`the session is ${state}`, async () => {
        const session = await sessionOf(nodeId);
        return session?.state === state ? session : undefined;
      }),
  };
}
