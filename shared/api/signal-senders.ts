import { z } from "zod";
import { SiteId } from "../ids.ts";
import { Reason } from "./decommissions.ts";
import { namedBy } from "./extensions.ts";
import { TokenName } from "./tokens.ts";
import { Timestamp } from "./values.ts";

export const SenderId = z
  .uuid()
  .meta(namedBy({ list: "listSignalSenders", name: "name", id: "id" }))
  .brand<"SenderId">();
export type SenderId = z.output<typeof SenderId>;

export const SignalSenderCreate = z.strictObject({
  name: TokenName.describe("Name of the sender, which the audit and the list of signals show as sender:<name>"),
  site_ids: z
    .array(SiteId)
    .min(1)
    .max(100)
    .describe("The sites to which the sender is limited; without sites its signals may be about every node")
    .optional(),
});

export const SignalSenderRotate = z.strictObject({
  overlap_seconds: z
    .int()
    .min(0)
    .max(604_800)
    .describe("Seconds for which the hub accepts the old secret too")
    .default(3_600),
});
export const SignalSenderRevoke = z.strictObject({ reason: Reason });

export const SignalSender = z.strictObject({
  id: SenderId,
  name: z.string(),
  site_ids: z.array(SiteId).nullable(),
  status: z.enum(["valid", "revoked"]),
  /** The path of the hub to which the external system posts its readiness signals. */
  path: z.string(),
  created_by: z.string(),
  created_at: Timestamp,
  last_used_at: Timestamp.nullable(),
  revoked_at: Timestamp.nullable(),
});

/** The answer to the creation of a signal sender, and to the rotation of its secret. Only this answer shows the secret. */
export const SignalSenderSecret = z.strictObject({ ...SignalSender.shape, secret: z.string() });
