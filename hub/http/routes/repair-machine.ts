import type { RepairMachine } from "../../../shared/api/repairs.ts";
import { classOf } from "../../../shared/condition-types.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { isReadInFull } from "../../../shared/machine-details.ts";
import { readMaasSystemId } from "../../db/queries/decommissions.ts";
import { readObservedMachine } from "../../db/queries/maas-machines.ts";
import { type ConditionNow, listConditions } from "../../db/queries/node-conditions.ts";
import { readInventory } from "../../db/queries/node-inventories.ts";
import { readNode } from "../../db/queries/nodes.ts";
import type { Db, Tx } from "../../db/tx.ts";

const toFault = ({ type, status, reason, message, changedAt }: ConditionNow): RepairMachine["faults"][number] => ({
  type,
  class: classOf(type),
  status,
  reason,
  message,
  changed_at: changedAt.toISOString(),
});

/** Reads what a repair team needs to know of the machine of a node; null if the hub no longer has the node. */
export async function readRepairMachine(db: Db | Tx, nodeId: NodeId): Promise<RepairMachine | null> {
  const node = await readNode(db, nodeId);
  if (node === null) return null;
  const systemId = await readMaasSystemId(db, nodeId);
  const row = systemId === null || node.siteId === null ? null : await readObservedMachine(db, node.siteId, systemId);
  const details = row !== null && isReadInFull(row.details) ? row.details : null;
  const inventory = await readInventory(db, nodeId);
  const conditions = (await listConditions(db, nodeId)).filter(
    ({ type, status, generation }) =>
      generation === node.generation && status !== "True" && classOf(type) !== "information",
  );
  return {
    node_status: node.status,
    sku_id: node.sku,
    location: { room: node.room, rack: node.rack, unit: node.unit },
    asset_tag: node.assetTag,
    host: node.host,
    maas_system_id: systemId,
    serial: details?.serial ?? null,
    board_serial: details?.board_serial ?? null,
    chassis_serial: details?.chassis_serial ?? null,
    firmware_version: details?.firmware_version ?? null,
    gpus: (inventory?.gpus ?? []).map(({ vendor, model, bus, serial = null }) => ({ vendor, model, bus, serial })),
    disks: (inventory?.disks ?? []).map(({ name, model, serial }) => ({ name, model, serial })),
    faults: conditions.map(toFault),
  };
}
