import { StatusHistory } from "../../../../shared/api/instances.ts";
import { SanitizationSummary } from "../../../../shared/api/sanitization.ts";
import { readFleet, wasCleaned } from "../fleet.ts";
import { ADMIN, readStep } from "../step.ts";

/** The histories of all machines with the records of their cleanings. */
export const querySanitization = readStep("query_sanitization", async (hub) => {
  const machines: object[] = [];
  for (const node of await readFleet(hub)) {
    const { entries } = await hub.call(StatusHistory, "GET", `${ADMIN}/nodes/${node.id}/status-history`);
    const records = await hub.all(SanitizationSummary, `${ADMIN}/sanitization-records?node_id=${node.id}`);
    machines.push({
      machine_id: node.id,
      status: entries.at(-1)?.status ?? null,
      available: node.schedulable,
      in_use: node.allocation !== null,
      has_gpu: (node.inventory?.gpus.length ?? 0) > 0,
      served_tenant: entries.some(({ status }) => status === "InUse"),
      sanitized: wasCleaned(entries, records),
      stale_tenant_binding: node.schedulable && node.allocation !== null,
      breakfix_skip_observed: false,
      tenancy_preserved: node.allocation !== null,
      vendor: node.inventory?.system.manufacturer ?? null,
      product_name: node.inventory?.system.model ?? null,
      bios_version: null,
      transitions: entries.map(({ status }) => status),
    });
  }
  return { machines_checked: machines.length, machines };
});
