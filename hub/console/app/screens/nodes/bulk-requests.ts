import { api, onceOnly, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import type { NodesSearch } from "./node-questions.ts";
import type { SiteChoice } from "./selection.ts";

export type BulkResult = Answer<"applyToNodes">;

/** The verbs for many nodes that take effect immediately. */
export const BULK_VERBS = {
  cordon: {
    title: "Cordon",
    effect: "New work stays off these nodes until they are uncordoned. Running work goes on.",
  },
  uncordon: { title: "Uncordon", effect: "Removes the cordons of these nodes that an operator has set." },
  quarantine: {
    title: "Quarantine",
    effect: "Takes these nodes out of service, because a person knows of a fault. No new work comes to them.",
  },
  lift_quarantine: { title: "Lift quarantine", effect: "Brings these quarantined nodes back into service." },
  activate: { title: "Activate", effect: "Brings these retired nodes back into service." },
  remove_health_override: {
    title: "Remove override",
    effect:
      "Removes one health override from each of these nodes. The hub may give them new work, although the cause of the override stands.",
  },
  set_location: {
    title: "Set location",
    effect: "Sets the room or the rack of these nodes, and removes the unit of a node whose rack changes.",
  },
} as const;
export type BulkVerb = keyof typeof BULK_VERBS;

export interface BulkAction {
  readonly verb: BulkVerb;
  readonly reason: string;
  readonly room: string;
  readonly rack: string;
  /** The source of the health override that the verb `remove_health_override` removes. */
  readonly source: string;
}

export interface SiteResult {
  readonly choice: SiteChoice;
  readonly result: BulkResult;
}

function actionOf({ verb, reason, room, rack, source }: BulkAction) {
  if (verb === "remove_health_override") return { verb, reason, source: source.trim() };
  if (verb !== "set_location") return { verb, reason };
  const location = {
    ...(room.trim() === "" ? {} : { room: room.trim() }),
    ...(rack.trim() === "" ? {} : { rack: rack.trim() }),
  };
  return { verb, reason, location };
}

/** What the person still has to fill in for the verb; null if nothing is missing. */
export function lackOf({ verb, reason, room, rack, source }: BulkAction): "reason" | "place" | "source" | null {
  if (reason.trim() === "") return "reason";
  if (verb === "set_location" && room.trim() + rack.trim() === "") return "place";
  return verb === "remove_health_override" && source.trim() === "" ? "source" : null;
}

/**
 * Converts the filter in the URL into the filter of a request for many nodes. The filter of a request for many nodes contains no site, because the
 * site is a separate field of the request.
 */
function filterOf(search: NodesSearch) {
  const {
    status,
    sku_id,
    schedulable,
    room,
    rack,
    address,
    failure_class,
    condition,
    health_override,
    search: text,
    hostname_prefix,
  } = search;
  return {
    ...(status === undefined ? {} : { status: [...status] as never }),
    ...(sku_id === undefined ? {} : { sku_id: [...sku_id] }),
    ...(schedulable === undefined ? {} : { schedulable: schedulable === "true" }),
    ...(failure_class === undefined ? {} : { failure_class: [...failure_class] as never }),
    ...Object.fromEntries(
      Object.entries({ room, rack, address, condition, health_override, search: text, hostname_prefix }).filter(
        ([, value]) => value !== undefined,
      ),
    ),
  };
}

/**
 * Sends one request for each site. A request for all nodes that match a filter contains the number of nodes that the person saw, and the hub refuses
 * the request if the filter now matches another number.
 */
export async function applyToNodes(
  action: BulkAction,
  choices: readonly SiteChoice[],
  search: NodesSearch,
  plan: boolean,
): Promise<SiteResult[]> {
  const results: SiteResult[] = [];
  for (const choice of choices) {
    const selected =
      choice.ids === null
        ? { filter: filterOf(search), expected_count: choice.expected ?? 0 }
        : { node_ids: [...choice.ids] };
    const body = { site_id: choice.siteId, action: actionOf(action), plan, ...selected };
    const headers = plan ? {} : onceOnly();
    results.push({ choice, result: await read(api.POST("/api/v1/admin/nodes/bulk", { body, headers })) });
  }
  return results;
}
