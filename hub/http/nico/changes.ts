import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { AllocationId, NodeId } from "../../../shared/ids.ts";
import type { PowerVerb } from "../../../shared/power.ts";
import { readAllocationVersion } from "../../db/queries/allocations.ts";
import { parse } from "../problem.ts";
import type { Endpoint, NicoCall } from "./endpoint.ts";
import { idIn } from "./inputs.ts";
import { readOneInstance } from "./instances.ts";
import { readOneMachine } from "./machines.ts";
import { carryOutOwn } from "./own-route.ts";

const BY_CLIENT = "Asked by a client of NICo's API";

/**
 * Returns the only change for which a request in NICo's form asks. Muster refuses a request that asks for no change or for several changes, as NICo
 * does.
 */
function onlyChange<T extends object>(changes: T): keyof T {
  const named = Object.entries(changes).filter(([, value]) => value !== undefined && value !== null);
  const [only] = named;
  if (only !== undefined && named.length === 1) return only[0] as keyof T;
  const fields = Object.keys(changes);
  throw new ApiError("validation_failed", `Ask for exactly one of ${fields.join(", ")}.`, {
    errors: (named.length === 0 ? fields : named.map(([field]) => field)).map((field) => ({
      pointer: `/${field}`,
      message: named.length === 0 ? "none of them is given" : "more than one is given",
    })),
  });
}

const refused = (field: string, why: string): ApiError =>
  new ApiError("validation_failed", `Muster cannot change ${field}: ${why}`, {
    errors: [{ pointer: `/${field}`, message: why }],
  });

const Labels = z.record(z.string(), z.string()).nullish();
const InstanceChange = z.strictObject({
  triggerReboot: z.literal(true).nullish(),
  labels: Labels,
  rebootWithCustomIpxe: z.unknown().optional(),
  applyUpdatesOnReboot: z.boolean().nullish(),
});

const changeInstance: Endpoint = {
  operationId: "nicoUpdateInstance",
  method: "PATCH",
  path: "/instance/{id}",
  permission: "write",
  right: "allocate",
  place: { of: "allocation", param: "id" },
  status: 200,
  answer: async (call) => {
    const id = idIn(call.params, AllocationId);
    const {
      rebootWithCustomIpxe: ipxe,
      applyUpdatesOnReboot: updates,
      ...changes
    } = parse(InstanceChange, call.body, "body");
    if (ipxe === true)
      throw refused("rebootWithCustomIpxe", "MAAS boots the host from its disk, and Muster gives it no other script.");
    if (updates === true) throw refused("applyUpdatesOnReboot", "Muster updates no firmware of a tenant's host.");
    if (onlyChange(changes) === "triggerReboot")
      await carryOutOwn(call, "rebootInstance", { id, body: { reason: BY_CLIENT } });
    else {
      const version = await readAllocationVersion(call.deps.db, id);
      await carryOutOwn(call, "updateInstance", {
        id,
        body: { labels: changes.labels },
        ...(version === null ? {} : { version }),
      });
    }
    return { body: await readOneInstance(call, id) };
  },
};

const MachineChange = z.strictObject({
  setMaintenanceMode: z.boolean().nullish(),
  maintenanceMessage: z.string().min(5).max(256).nullish(),
  labels: z.unknown().optional(),
  instanceTypeId: z.unknown().optional(),
  clearInstanceType: z.unknown().optional(),
  onlineRepair: z.unknown().optional(),
  healthIssue: z.unknown().optional(),
});

const NOT_OF_A_MACHINE = {
  labels: "a machine has the labels that its place gives it. Set the rack with update-node.",
  instanceTypeId: "the SKU of a node does not change.",
  clearInstanceType: "the SKU of a node does not change.",
  onlineRepair: "use open-online-repair of Muster's API.",
} as const;

/** Maintenance in NICo's sense is a person's cordon: the machine takes no new work, and its running work goes on. */
async function setMaintenance(call: NicoCall, id: NodeId, on: boolean, message: string | null): Promise<void> {
  if (on && message === null) throw refused("setMaintenanceMode", "maintenanceMessage is needed to begin maintenance.");
  if (!on && message !== null) throw refused("maintenanceMessage", "it belongs to the begin of maintenance.");
  await carryOutOwn(call, on ? "cordonNode" : "uncordonNode", { id, body: { reason: message ?? BY_CLIENT } });
}

const changeMachine: Endpoint = {
  operationId: "nicoUpdateMachine",
  method: "PATCH",
  path: "/machine/{id}",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  status: 200,
  answer: async (call) => {
    const id = idIn(call.params, NodeId);
    const { maintenanceMessage, healthIssue: _issue, ...changes } = parse(MachineChange, call.body, "body");
    const only = onlyChange(changes);
    if (only !== "setMaintenanceMode") throw refused(only, NOT_OF_A_MACHINE[only]);
    await setMaintenance(call, id, changes.setMaintenanceMode === true, maintenanceMessage ?? null);
    return { body: await readOneMachine(call, id) };
  },
};

/** NICo's power actions on a machine, each as the power verb of Muster's API. */
const ACTIONS = {
  On: { verb: "on", immediate: false },
  GracefulShutdown: { verb: "off", immediate: false },
  ForceOff: { verb: "off", immediate: true },
  GracefulRestart: { verb: "reboot", immediate: false },
  ForceRestart: { verb: "reboot", immediate: true },
  ACPowercycle: { verb: "cycle", immediate: false },
} as const satisfies Readonly<Record<string, { readonly verb: PowerVerb; readonly immediate: boolean }>>;
const PowerChange = z.strictObject({
  action: z.enum(Object.keys(ACTIONS) as [keyof typeof ACTIONS]),
  acknowledgeAttachedInstance: z.boolean().nullish(),
});

const power: Endpoint = {
  operationId: "nicoPowerMachine",
  method: "PATCH",
  path: "/machine/{id}/power",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  status: 202,
  answer: async (call) => {
    const { action, acknowledgeAttachedInstance } = parse(PowerChange, call.body, "body");
    const body = {
      ...ACTIONS[action],
      reason: BY_CLIENT,
      acknowledge_tenant: acknowledgeAttachedInstance === true,
    };
    await carryOutOwn(call, "powerNode", { id: idIn(call.params, NodeId), body });
    return { body: { message: "Power request was accepted" } };
  },
};

export const nicoChanges = [changeInstance, changeMachine, power];
