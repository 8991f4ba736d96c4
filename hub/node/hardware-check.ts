import { classOf, maySay, NOT_OBSERVED } from "../../shared/condition-types.ts";
import { type Failure, failure } from "../../shared/failures.ts";
import type { Inventory } from "../../shared/inventory.ts";
import type { TaskResult } from "../../shared/tasks/index.ts";
import { readConditions, removeConditions, writeConditions, writeOwnCondition } from "../db/queries/node-conditions.ts";
import { keepUnlessOlder } from "../db/queries/node-inventories.ts";
import { readRoceOfNode } from "../db/queries/node-roce.ts";
import { readSku } from "../db/queries/skus.ts";
import type { Node, Sku } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { compareHardware, type HardwareVerdict, UNREADABLE, type WantedHardware } from "./hardware-verdict.ts";
import { compareAddresses } from "./roce-verdict.ts";

/** A node keeps the number of GPUs of the time when it was made, even if somebody changes its SKU later. */
const wantedOf = (node: Pick<Node, "gpusTotal">, sku: Pick<Sku, "gpuVendor" | "hardware">): WantedHardware => ({
  gpuVendor: sku.gpuVendor,
  gpusTotal: node.gpusTotal,
  hardware: sku.hardware,
});

/** The argument `before` lists the node's conditions as they were before the comparison of the addresses. */
async function judgeAddresses(
  tx: Tx,
  node: Pick<Node, "id" | "generation">,
  inventory: Inventory,
  before: Awaited<ReturnType<typeof readConditions>>,
): Promise<void> {
  const known = before.some(({ type, reason }) => type === "network.addresses" && reason !== UNREADABLE);
  const verdict = compareAddresses(inventory, await readRoceOfNode(tx, node.id), known);
  if (verdict === null) await removeConditions(tx, node.id, "network.addresses");
  else await writeOwnCondition(tx, node, { type: "network.addresses", ...verdict });
}

const NO_SKU: HardwareVerdict = {
  status: "Unknown",
  reason: NOT_OBSERVED,
  message: "The hub no longer has the node's SKU, so it cannot compare the host with it.",
};

/**
 * Compares each inventory that the agent sends with the node's SKU and with the RoCE addresses of its deploy, so that a host that loses a GPU or an
 * address gets no new tenant. A node takes no tenant until the hub has compared the first inventory of the node's present generation with the SKU and
 * the RoCE addresses.
 */
export async function judgeInventory(tx: Tx, node: Node, inventory: Inventory): Promise<void> {
  const before = await readConditions(tx, node.id, node.generation);
  await judgeAddresses(tx, node, inventory, before);
  const sku = await readSku(tx, node.sku);
  const known = before.some(({ type, reason }) => type === "hardware.sku" && reason !== NOT_OBSERVED);
  const count = inventory.gpus_counted === true ? "counted" : known ? "known" : "some";
  const verdict = sku === null ? NO_SKU : compareHardware(inventory, wantedOf(node, sku), count);
  await writeOwnCondition(tx, node, { type: "hardware.sku", ...verdict });
}

export interface HardwareCheck {
  readonly sku: HardwareVerdict;
  /** The health conditions that keep work off the node and that the agent has observed as not True. */
  readonly faults: readonly string[];
}

/**
 * Judges the result of the task `node.check_hardware`: the host must be as its SKU says, and no health condition that keeps work off a node may be
 * wrong.
 */
export function judgeCheck(
  node: Pick<Node, "gpusTotal">,
  sku: Pick<Sku, "gpuVendor" | "hardware">,
  result: TaskResult<"node.check_hardware">,
): HardwareCheck {
  const wanted = wantedOf(node, sku);
  const faults = result.conditions
    .filter(({ type, status, reason }) => classOf(type) === "barring" && status !== "True" && reason !== NOT_OBSERVED)
    .map(({ type, status, reason, message }) => `${type} is ${status}: ${reason}, ${message}`);
  return { sku: compareHardware(result.inventory, wanted, result.gpus_counted ? "counted" : "some"), faults };
}

/**
 * Stores the result of the task `node.check_hardware`. If the hub has a newer inventory of the host, the hub has compared that inventory already, and
 * the conditions about the host's hardware stay.
 */
export async function storeCheck(
  tx: Tx,
  node: Pick<Node, "id" | "generation">,
  result: TaskResult<"node.check_hardware">,
  { sku }: HardwareCheck,
): Promise<void> {
  const isNewest = await keepUnlessOlder(tx, node.id, result.inventory);
  const own = result.conditions.filter(({ type }) => maySay("agent", type));
  if (own.length > 0) await writeConditions(tx, node, "agent", own);
  if (!isNewest) return;
  await writeOwnCondition(tx, node, { type: "hardware.sku", ...sku });
  await judgeAddresses(tx, node, result.inventory, await readConditions(tx, node.id, node.generation));
}

/**
 * The failure of the stage `check_hardware`; null for a host that is as it must be. A host whose inventory lists no GPUs fails this check if its SKU
 * has GPUs, even if the agent did not count the GPUs on the PCI bus.
 */
export function checkFailure(
  hostname: string,
  skuId: string,
  { sku, faults }: HardwareCheck,
  evidence: Failure["evidence"],
): Failure | null {
  const all = [...(sku.status === "True" ? [] : [sku.message]), ...faults];
  if (all.length === 0) return null;
  const code =
    sku.status === "True" ? "host_unhealthy" : sku.reason === UNREADABLE ? "hardware_unread" : "sku_mismatch";
  const message = `Host ${hostname} is not as SKU ${skuId} says, or not healthy: ${all.join(" ")}`.slice(0, 1_000);
  return failure("hardware_mismatch", code, message, {
    ...evidence,
    sku_id: skuId,
    findings: all.slice(0, 20).map((one) => one.slice(0, 256)),
  });
}
