import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eq, inArray, sql } from "../../../hub/db/orm.ts";
import { countMoves } from "../../../hub/db/queries/breaker-counts.ts";
import { setNodeHost } from "../../../hub/db/queries/nodes.ts";
import { nodeEvents, nodes } from "../../../hub/db/schema/index.ts";
import { deleteNode, enterDraining, retire } from "../../../hub/node/lifecycle.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import type { NodeTransition } from "../../../hub/node/transitions.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { nodeInService } from "../../support/node-in-service.ts";
import { type OnboardingRig, startOnboardingRig } from "../../support/onboarding-rig.ts";

/**
 * A breaker trips when more nodes than the breaker's limit change status within ten minutes (decision F1). The breaker counts each node whose status
 * changed, even if the node has since returned to service, or was retired or removed.
 */
describe("a breaker", () => {
  let rig: OnboardingRig;
  let made: NodeId[] = [];
  beforeAll(async () => {
    rig = await startOnboardingRig({ machines: 0 });
  });
  afterAll(() => rig?.close());
  beforeEach(async () => {
    await rig.services.db.update(nodes).set({ siteId: null });
    made = [];
    for (let n = 0; n < 8; n += 1) made.push(await nodeInService(rig, `host-${n}-${randomUUID().slice(0, 8)}`));
  });

  const inTx: OnboardingRig["services"]["inTx"] = (fn) => rig.services.inTx(fn);
  const counted = (kind: "quarantine" | "offline", besides: readonly NodeId[] = []) =>
    inTx((tx) => countMoves(tx, rig.siteId, kind, { windowSeconds: 600, besides }));
  const move = (nodeId: NodeId, ...moves: NodeTransition[]) =>
    inTx(async (tx) => {
      for (const one of moves) expect((await moveNode(tx, nodeId, one, "a test")).moved).toBe(true);
    });
  const longAgo = (...nodeIds: NodeId[]) =>
    rig.services.db
      .update(nodeEvents)
      .set({ occurredAt: sql`now() - interval '601 seconds'` })
      .where(inArray(nodeEvents.nodeId, nodeIds));
  const quarantine = { from: "active", to: "quarantined", owner: "reconciler" } as const;
  const silent = { from: "active", to: "offline", owner: "heartbeat" } as const;
  const back = { from: "offline", to: "active", owner: "heartbeat" } as const;

  it("counts nodes that were quarantined and have since healed, returned, retired or been removed", async () => {
    const [healed, returned, retired, removed, quarantined] = made as [NodeId, NodeId, NodeId, NodeId, NodeId];
    await move(healed, quarantine, { from: "quarantined", to: "active", owner: "reconciler" }, quarantine);
    await move(healed, { from: "quarantined", to: "active", owner: "reconciler" });
    await move(returned, quarantine, { from: "quarantined", to: "active", owner: "operator" });
    for (const nodeId of [retired, removed, quarantined]) await move(nodeId, quarantine);
    for (const nodeId of [retired, removed])
      await inTx(async (tx) => {
        await enterDraining(tx, nodeId, randomUUID(), "drained");
        await retire(tx, nodeId, "drained");
      });
    await inTx((tx) => deleteNode(tx, removed, randomUUID(), "removed"));
    expect(await counted("quarantine")).toEqual({ inService: 8, moved: 5 });
    expect(await counted("quarantine", [healed, returned])).toEqual({ inService: 8, moved: 3 });
    expect(await counted("offline")).toEqual({ inService: 5, moved: 0 });
  });

  it("counts no node whose status changed before the window or by another owner", async () => {
    const [before, byOthers] = made as [NodeId, NodeId];
    await move(before, quarantine);
    await longAgo(before);
    await inTx((tx) => setNodeHost(tx, before, "10.0.0.1"));
    await move(byOthers, { from: "active", to: "quarantined", owner: "cleanup" });
    expect(await counted("quarantine")).toEqual({ inService: 6, moved: 0 });
  });

  it("counts nodes that became offline within the window, but not nodes with only a new address", async () => {
    const [gone, away, returned] = made as [NodeId, NodeId, NodeId];
    for (const nodeId of [gone, away]) await move(nodeId, silent);
    await longAgo(gone);
    await inTx((tx) => setNodeHost(tx, gone, "10.0.0.1"));
    await move(returned, silent, back);
    expect(await counted("offline")).toEqual({ inService: 8, moved: 2 });
  });

  it("counts only nodes of the site", async () => {
    const [elsewhere] = made as [NodeId];
    await move(elsewhere, quarantine);
    await rig.services.db.update(nodes).set({ siteId: null }).where(eq(nodes.id, elsewhere));
    expect(await counted("quarantine")).toEqual({ inService: 7, moved: 0 });
  });
});
