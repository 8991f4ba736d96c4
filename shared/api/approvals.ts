import { z } from "zod";
import { SiteId } from "../ids.ts";
import { Json } from "../json.ts";
import { Reason } from "./decommissions.ts";
import { Timestamp } from "./values.ts";

/** The kinds of actions that need the approval of a second person if a host's profile says so (decision I11). */
export const SECOND_PERSON = ["erase", "full_decommission", "scripts"] as const;
export const SecondPerson = z.enum(SECOND_PERSON);
export type SecondPerson = z.output<typeof SecondPerson>;

export const APPROVAL_STATES = ["pending", "approved", "refused", "used", "expired", "withdrawn"] as const;
export type ApprovalState = (typeof APPROVAL_STATES)[number];

/** The HTTP header in which a repeated request names the approval that a second person gave. */
export const APPROVAL_HEADER = "Muster-Approval";

export const ApprovalId = z.uuid().brand<"ApprovalId">();
export type ApprovalId = z.output<typeof ApprovalId>;

/**
 * The profiles because of which a request needs the approval of a second person, each with the kind of action in the profile's `second_person` to
 * which the request belongs.
 */
export const Because = z.array(z.strictObject({ entry: SecondPerson, profile: z.string() }));
export type Because = z.output<typeof Because>;

/** A request that needs or needed the approval of a second person. */
export const Approval = z.strictObject({
  id: ApprovalId,
  state: z.enum(APPROVAL_STATES),
  /** The id of the operation that the request asks for, such as `decommissionNode`. */
  operation: z.string(),
  does: z.string(),
  because: Because,
  params: z.record(z.string(), z.string()),
  body: Json,
  site_id: SiteId,
  requested_by: z.string(),
  requested_by_you: z
    .boolean()
    .describe("Whether the caller has asked, and so may send the request again or withdraw it"),
  cannot_grant: z.string().nullable().describe("Why the caller cannot approve the request; null if the caller can"),
  requested_at: Timestamp,
  expires_at: Timestamp,
  /** The person who approved or refused the request, or who withdrew it; null while the request is pending. */
  decided_by: z.string().nullable(),
  decided_at: Timestamp.nullable(),
  decision_reason: z.string().nullable(),
  used_at: Timestamp.nullable(),
});
export type Approval = z.output<typeof Approval>;

export const ApprovalDecision = z.strictObject({ reason: Reason });
