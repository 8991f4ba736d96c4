export type Mode = "drain" | "soft_reset" | "storage_cleanup" | "reimage" | "release" | "remove" | "full_decommission";

/** The options that a person can choose for a decommission, besides its mode. */
export interface Choice {
  readonly erase: "none" | "quick" | "secure";
  readonly scope: "local" | "weka" | "all";
  /** True to end the login sessions that are still open when the time that the users get to leave is over. */
  readonly force: boolean;
  readonly removeRecord: boolean;
  /** The value of the input field for the drain time: a string if the field is empty or holds no number. */
  readonly drainMinutes: number | string;
}
export const MOST_DRAIN_MINUTES = 1440;
type Option = "erase" | "scope" | "drain" | "record";

interface ModeAbout {
  readonly title: string;
  readonly effect: string;
  /** True if the decommission mode destroys data, or if the node cannot return to service by another verb. */
  readonly final: boolean;
  readonly options: readonly Option[];
}

/** The modes of a decommission, each with a description of its effect. */
export const MODES: Readonly<Record<Mode, ModeAbout>> = {
  drain: {
    title: "Drain",
    effect: "The hub cordons the node, lets its users leave, and retires the node. Activate puts it back into service.",
    final: false,
    options: ["drain"],
  },
  soft_reset: {
    title: "Soft reset",
    effect:
      "The hub ends the tenant's use, cleans storage, accounts and GPUs, checks for residue, writes a sanitization record, and returns the node to service. The system stays.",
    final: true,
    options: ["scope"],
  },
  storage_cleanup: {
    title: "Clean storage",
    effect:
      "The hub ends all sessions, cleans the storage of the node, looks for residue, and returns the node to service.",
    final: true,
    options: ["scope"],
  },
  reimage: {
    title: "Reimage",
    effect:
      "The hub releases the machine with an erase of its disks, deploys it again, checks it, writes a sanitization record, and returns the node to service.",
    final: true,
    options: ["erase"],
  },
  release: {
    title: "Release machine",
    effect: "The hub releases the machine in MAAS and powers it off. The node cannot be put into service again.",
    final: true,
    options: [],
  },
  remove: {
    title: "Remove",
    effect:
      "The hub uninstalls the agent, revokes the certificates and deletes the node. A machine that was not released stays deployed in MAAS, and may be released later.",
    final: true,
    options: [],
  },
  full_decommission: {
    title: "Full decommission",
    effect:
      "The node and its host leave the fleet: the hub drains the node, cleans its storage, releases the machine with an erase of its disks, powers it off, and removes the node.",
    final: true,
    options: ["erase", "scope", "record"],
  },
};

/**
 * Returns what is wrong with the options of the decommission, before the console sends the request. An empty drain time is an error and does not mean
 * 0, because 0 gives the users no time to leave.
 */
export function faultOf(mode: Mode, { drainMinutes }: Pick<Choice, "drainMinutes">): string | undefined {
  if (!MODES[mode].options.includes("drain")) return undefined;
  const isRight = typeof drainMinutes === "number" && Number.isInteger(drainMinutes);
  return isRight && drainMinutes >= 0 && drainMinutes <= MOST_DRAIN_MINUTES
    ? undefined
    : `Type whole minutes from 0 to ${MOST_DRAIN_MINUTES}. 0 gives the users no time.`;
}

/**
 * The body of the request for a decommission. The body of a request for a decommission contains `mode` even if the path of the request already names
 * the mode.
 */
export function bodyOf(
  mode: Mode,
  { reason, erase, scope, force, removeRecord, drainMinutes }: Choice & { reason: string },
) {
  if (mode === "drain") return { mode, reason, deadline_seconds: Number(drainMinutes) * 60, force };
  if (mode === "soft_reset") return { mode, reason, storage_cleanup: scope };
  if (mode === "storage_cleanup") return { mode, reason, scope };
  if (mode === "reimage") return { mode, reason, erase };
  if (mode === "full_decommission")
    return { mode, reason, erase, storage_cleanup: scope, remove_maas_record: removeRecord };
  if (mode === "release") return { mode, reason };
  return { mode, reason };
}

/**
 * The request that asks whether the hub would accept a decommission with the given mode for the node; the request begins no decommission. The hub
 * fills in the omitted fields of `operation`, but the generated type does not mark nested fields as optional.
 */
export const planOf = (siteId: string, nodeId: string, mode: Mode) => ({
  site_id: siteId,
  node_ids: [nodeId],
  operation: { mode, reason: "a plan before a request" } as never,
  plan: true,
});
