import { z } from "zod";

/** An event of a request that needs a second person; `message` says what the request does, and `by` names whoever caused the event. */
const Approval = z.strictObject({
  approval_id: z.string(),
  site_id: z.string(),
  operation: z.string(),
  requested_by: z.string(),
  by: z.string(),
  expires_at: z.string(),
  message: z.string(),
});

/** The domain events of requests that wait for a second person (decision I11). */
export const APPROVAL_EVENTS = {
  "approval.requested": {
    subject: "approvals/{approval_id}",
    meaning: "A request waits for the approval of a second person; `message` says what the request does.",
    data: Approval,
  },
  "approval.approved": {
    subject: "approvals/{approval_id}",
    meaning: "A second person has approved a request, which its requester may send again once.",
    data: Approval,
  },
  "approval.refused": {
    subject: "approvals/{approval_id}",
    meaning: "A second person has refused a request, or has taken an approval back.",
    data: Approval,
  },
  "approval.used": {
    subject: "approvals/{approval_id}",
    meaning: "The requester has sent the approved request again, and the hub has carried it out.",
    data: Approval,
  },
  "approval.expired": {
    subject: "approvals/{approval_id}",
    meaning: "The time of an approval is over before it was used; the requester may ask for another one.",
    data: Approval,
  },
  "approval.withdrawn": {
    subject: "approvals/{approval_id}",
    meaning: "The requester has withdrawn a request that waited for a second person.",
    data: Approval,
  },
} as const;
