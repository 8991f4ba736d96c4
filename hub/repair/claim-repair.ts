import { ApiError } from "../../shared/api/errors.ts";
import type { RepairClaim } from "../../shared/api/repairs.ts";
import type { RepairId } from "../../shared/ids.ts";
import { createAllocation } from "../allocations/create-allocation.ts";
import { databaseNow } from "../db/queries/clock.ts";
import { attemptBegan } from "../db/queries/repair-events.ts";
import type { RepairCase } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import type { Obstacle } from "../node/schedulable.ts";
import { isRepairMark } from "./apply-marks.ts";
import { contextOf, lockNodeAndCase, moveCase, noteOnCase } from "./move-case.ts";
import { mustBeFree } from "./must-be-free.ts";

export interface Claimant {
  readonly name: string;
  readonly tenant: string | null;
}

const HOUR_MS = 3_600_000;
/** The longest time of one repair attempt with all its extensions, so that no claim keeps a machine out of service for ever. */
const LONGEST_ATTEMPT_DAYS = 14;

/**
 * Claims a machine for its repair, which begins a repair attempt. Whoever has claimed a machine for its repair may extend the claim. A machine may be
 * claimed in every status of its node, also after a failed cleaning (decision R1); only access to the host needs a node in service.
 */
export async function claimRepair(tx: Tx, id: RepairId, by: Claimant, body: RepairClaim): Promise<RepairCase> {
  const { node, row } = await lockNodeAndCase(tx, id);
  const claimUntil = new Date((await databaseNow(tx)).getTime() + body.hours * HOUR_MS);
  const until = claimUntil.toISOString();
  if (row.state === "claimed") {
    mustBeClaimant(row, by);
    if (body.access !== undefined) throw hasAccess(row);
    await mustEndInTime(tx, row, claimUntil);
    const told = { entry: "claim_extended", actor: by.name, message: `until ${until}` } as const;
    return noteOnCase(tx, row, told, { claimUntil });
  }
  if (row.mode === "full") await mustBeFree(tx, row);
  const repairTenant = by.tenant ?? body.access?.tenant ?? null;
  if (body.access !== undefined && row.mode === "online") throw hasTenant(row);
  const fresh = { outcome: null, workedUntil: null, validatedAt: null, validatedBy: null, accessAllocationId: null };
  const told = { entry: "claimed", actor: by.name, message: body.reason, details: { until } } as const;
  const change = { ...fresh, attempt: row.attempt + 1, claimedBy: by.name, repairTenant, claimUntil };
  const claimed = await moveCase(tx, row, "claim", told, change);
  if (body.access === undefined || node === null) return claimed;
  if (repairTenant === null)
    throw new ApiError(
      "validation_failed",
      "Access to the host needs the name of a tenant, for example the repair team's.",
      {
        errors: [{ pointer: "/access/tenant", message: "is needed, because your credential names no tenant" }],
      },
    );
  const { login_user, ssh_keys, root } = body.access;
  const wanted = {
    node_id: node.id,
    tenant: repairTenant,
    login_user,
    ssh_keys,
    ssh_key_ids: [],
    ssh_key_group_ids: [],
    root,
    name: null,
    description: null,
    labels: { repair: id },
    allow_unhealthy_machine: false,
    ends_at: null,
  };
  const { id: accessAllocationId } = await createAllocation(tx, wanted, by.name, { tolerates: isOfRepair });
  const access = {
    entry: "access_given",
    actor: by.name,
    message: `with access by allocation ${accessAllocationId}`,
  } as const;
  return noteOnCase(tx, claimed, access, { accessAllocationId });
}

/**
 * A repair team may get access to the machine despite the repair case and its marks, because these are the reason for the team's work. Every health
 * override that is no repair mark still keeps the repair team away, e.g. the override for disks that were perhaps not erased, so that no repair team
 * sees a former tenant's data.
 */
const isOfRepair = ({ kind, source }: Obstacle): boolean =>
  kind === "in_repair" || (source !== undefined && isRepairMark(source));

/** A repair claim on a machine belongs to the person or program that made it, and to every repair system of the same tenant. */
export const isClaimant = ({ claimedBy, repairTenant }: RepairCase, by: Claimant): boolean =>
  claimedBy === by.name || (by.tenant !== null && by.tenant === repairTenant);

function mustBeClaimant(row: RepairCase, by: Claimant): void {
  if (isClaimant(row, by)) return;
  throw new ApiError(
    "conflict",
    `Repair ${row.id} of node ${row.hostname} is claimed by ${row.claimedBy} until ${row.claimUntil?.toISOString()}. Take another repair.`,
    contextOf(row),
  );
}

async function mustEndInTime(tx: Tx, row: RepairCase, claimUntil: Date): Promise<void> {
  const began = await attemptBegan(tx, row);
  if (began === null) throw new Error(`repair ${row.id} is claimed without an entry of its claim`);
  const latest = new Date(began.getTime() + LONGEST_ATTEMPT_DAYS * 24 * HOUR_MS);
  if (claimUntil <= latest) return;
  throw new ApiError(
    "conflict",
    `Attempt ${row.attempt} of repair ${row.id} ends at the latest at ${latest.toISOString()}, ${LONGEST_ATTEMPT_DAYS} days after its claim. Extend it by fewer hours, or report it: in_progress ends it without success, and manual hands the machine to a person.`,
    contextOf(row),
  );
}

const hasAccess = (row: RepairCase): ApiError =>
  new ApiError(
    "conflict",
    `Repair ${row.id} is claimed already, and access is given only with the claim. Extend the claim without access, or report the attempt and claim the machine again.`,
    contextOf(row),
  );
const hasTenant = (row: RepairCase): ApiError =>
  new ApiError(
    "conflict",
    `Repair ${row.id} is an online repair, so node ${row.hostname} has its tenant, and no second account. Claim it without access; the tenant has to let the repair team in.`,
    contextOf(row),
  );
