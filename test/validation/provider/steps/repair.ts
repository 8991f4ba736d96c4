/** The steps that give machines back for maintenance and repair, and that read what the hub has told about them. */
import { z } from "zod";
import { DecommissionBatchCreated } from "../../../../shared/api/batches.ts";
import { NodeDetail } from "../../../../shared/api/nodes.ts";
import { Repair, RepairDetail } from "../../../../shared/api/repairs.ts";
import type { HubApi } from "../../../support/hub-api.ts";
import { until } from "../../../support/until.ts";
import { readFleet } from "../fleet.ts";
import { ADMIN, absent, argument, readStep, type Step } from "../step.ts";

const REASON = "NVIDIA's validation suite";

/** Cordons a machine, as a person does who plans its maintenance. A tenant on the machine keeps it. */
const returnNode: Step = {
  name: "return_node_maintenance",
  phase: "test",
  seconds: 120,
  args: { "machine-id": "{{machine_id}}" },
  run: async (hub, args) => {
    const id = argument(args, "machine-id");
    await hub.call(z.unknown(), "POST", `${ADMIN}/nodes/${id}/cordon`, { reason: `${REASON}: a planned maintenance` });
    const { schedulable, cordon_reason: reason } = await hub.call(NodeDetail, "GET", `${ADMIN}/nodes/${id}`);
    const accepted = !schedulable && reason !== null;
    return {
      success: accepted,
      operation: { requested: true, accepted, machine_id: id, maintenance_mode: "cordoned", message: reason },
    };
  },
};

/** Reports a fault of a machine, so that a repair system may claim it, and waits until the node takes no tenant. */
const replaceHost: Step = {
  name: "request_host_replacement",
  phase: "test",
  seconds: 300,
  args: { "machine-id": "{{replaced_machine_id}}" },
  run: async (hub, args) => {
    const id = argument(args, "machine-id");
    const issue = { category: "Hardware", summary: "GPU 3 has fallen off the bus" };
    const asked = { node_id: id, machine_health_issue: issue, request: true, reason: REASON };
    const repair = await hub.call(RepairDetail, "POST", `${ADMIN}/repairs`, asked);
    const node = await until(
      "the node to take no tenant",
      async () => {
        const now = await hub.node(id);
        return now.schedulable ? undefined : now;
      },
      { timeoutMs: 60_000, everyMs: 500 },
    );
    return {
      success: true,
      operation: {
        requested: true,
        node_removed_from_pool: !node.schedulable,
        machine_id: id,
        message: `Repair ${repair.id} is ${repair.state}: ${node.unschedulable_reasons.join(", ")}`,
      },
    };
  },
};

/** Takes all machines of a rack out of service by one batch. */
const returnRack: Step = {
  name: "return_rack_maintenance",
  phase: "test",
  seconds: 600,
  args: { "rack-id": "{{rack_id}}" },
  run: async (hub, args) => {
    const rack = argument(args, "rack-id");
    const mine = (await hub.nodes()).filter(({ location, status }) => location.rack === rack && status === "active");
    const batch = await hub.call(DecommissionBatchCreated, "POST", `${ADMIN}/decommissions/batch`, {
      site_id: mine[0]?.site_id,
      operation: { mode: "drain", reason: `${REASON}: the rack goes back to its provider` },
      filter: { rack, status: ["active"] },
      expected_count: mine.length,
    });
    await until(
      "the machines of the rack to be out of service",
      async () => {
        const left = (await hub.nodes()).filter(
          ({ id, status }) => mine.some((one) => one.id === id) && status !== "retired",
        );
        return left.length === 0 ? true : undefined;
      },
      { timeoutMs: 540_000, everyMs: 500 },
    );
    const accepted = batch.refused === 0 && batch.accepted === mine.length && mine.length > 0;
    return { success: accepted, operation: { requested: true, accepted, rack_id: rack } };
  },
};

const maintenance = readStep("query_maintenance_events", async (hub) => {
  const events = (await readFleet(hub))
    .filter(({ cordon_owner: owner }) => owner?.startsWith("operator:") === true)
    .map(({ id, status, cordon_reason: message }) => ({ machine_id: id, status, message }));
  return { events_queryable: true, events };
});

const history = readStep("query_repair_history", async (hub) => {
  const records: object[] = [];
  for (const { id, node_id: node } of await hub.all(Repair, `${ADMIN}/repairs`)) {
    const { timeline } = await hub.call(RepairDetail, "GET", `${ADMIN}/repairs/${id}`);
    records.push({ machine_id: node, entries: timeline.map(({ at, entry, message }) => ({ at, entry, message })) });
  }
  return { history_queryable: true, records };
});

const Told = z.looseObject({ type: z.string(), time: z.string(), data: z.looseObject({}) });
const Data = z.looseObject({ node_id: z.string().optional(), mode: z.string().optional() });

/** The domain events of the types, as every reader of the event feed and every webhook gets them. */
async function toldBy(hub: HubApi, isMeant: (type: string, data: z.output<typeof Data>) => boolean) {
  const events = await hub.all(Told, `${ADMIN}/events?limit=200`);
  return events.flatMap(({ type, time, data }) => {
    const about = Data.parse(data);
    if (about.node_id === undefined || !isMeant(type, about)) return [];
    return [{ machine_id: about.node_id, type, message: JSON.stringify(data), notified_at: time }];
  });
}

const channel = (name: string, isMeant: (type: string, data: z.output<typeof Data>) => boolean): Step =>
  readStep(name, async (hub) => ({
    notification_channel_observable: true,
    notifications: await toldBy(hub, isMeant),
  }));

const LEAVES: ReadonlySet<string | undefined> = new Set(["drain", "remove", "release", "full_decommission"]);
const retirement = readStep("query_retirement_notices", async (hub) => ({
  notices_queryable: true,
  notices: await toldBy(hub, (type, { mode }) => type === "node.decommission.started" && LEAVES.has(mode)),
}));

/** In the order in which they run: some act, and those after them read what came of it. */
export const REPAIR_STEPS: readonly Step[] = [
  returnNode,
  maintenance,
  replaceHost,
  returnRack,
  history,
  retirement,
  channel("query_planned_notifications", (type) => type === "node.cordon.changed"),
  channel("query_failure_notifications", (type) => type === "repair.opened" || type === "node.health_override.set"),
  absent(
    "query_serial_numbers",
    "test",
    "Muster's own API shows no serial numbers of chassis and boards; its routes in NICo's form do",
  ),
  absent("query_switch_firmware", "test", "Muster manages no switches"),
  absent("query_bmc_kernel_logs", "test", "Muster reads no logs of BMCs"),
  absent("query_node_health_agents", "test", "Muster does not look for GPUd or Sentinel on a host"),
];
