import { randomUUID } from "node:crypto";
import { insertApproval } from "../../hub/db/queries/approvals.ts";
import type { Tx } from "../../hub/db/tx.ts";
import type { ApprovalId } from "../../shared/api/approvals.ts";
import type { SiteId } from "../../shared/ids.ts";

/** Writes a request of the person Ann that waits for a second person, and returns the id of its approval. */
export async function addWaitingApproval(tx: Tx, siteId: SiteId): Promise<ApprovalId> {
  const nodeId = randomUUID();
  const row = await insertApproval(
    tx,
    {
      operation: "decommissionNode",
      neededRight: "operate_nodes",
      siteId,
      params: { id: nodeId },
      body: { mode: "full_decommission", reason: "a test" },
      requestSha256: nodeId,
      does: `Take out of the fleet node ${nodeId}.`,
      because: [{ entry: "full_decommission", profile: "default" }],
      requestedBy: "oidc:ann",
      requester: "person:ann",
      requesterIds: ["person:ann"],
    },
    24,
  );
  if (row === null) throw new Error("the request has an approval already");
  return row.id;
}
