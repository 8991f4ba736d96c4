import { NOWHERE, type NodeLocation } from "../../shared/api/locations.ts";
import type { NodeId, SiteId } from "../../shared/ids.ts";
import type { OnboardingMode } from "../../shared/onboarding-mode.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import { insertNode, readNode } from "../db/queries/nodes.ts";
import type { Node } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import type { TransitionOwner } from "./transitions.ts";

export interface NewNode {
  readonly id: NodeId;
  readonly hostname: string;
  readonly siteId: SiteId | null;
  readonly sku: string;
  readonly gpusTotal: number;
  readonly regionCode: string;
  readonly onboardingMode: OnboardingMode;
  readonly owner: TransitionOwner;
  readonly location?: NodeLocation | undefined;
}

/**
 * Creates a node's row (lifecycle 8.1). The caller of `createNode` chooses the node's id; a second call with the same id returns the existing row.
 */
export async function createNode(tx: Tx, input: NewNode): Promise<{ node: Node; created: boolean }> {
  const { owner, location = NOWHERE, ...values } = input;
  const status = input.onboardingMode === "maas" ? "enrolling" : "bootstrap_issued";
  const created = await insertNode(tx, { ...values, ...location, status });
  if (created !== null) {
    await recordNodeEvent(tx, {
      nodeId: input.id,
      type: "created",
      toStatus: status,
      owner,
      message: `Node record created for ${input.hostname}`,
    });
    return { node: created, created: true };
  }
  const node = await readNode(tx, input.id);
  if (node === null) throw new Error(`node ${input.id} conflicts with a record that cannot be read`);
  return { node, created: false };
}
