import { z } from "zod";
import { SiteId } from "../ids.ts";
import { Tenant } from "./allocations.ts";
import { Reason } from "./decommissions.ts";
import { namedBy } from "./extensions.ts";
import { API_ROLES, isRoleOfTenants } from "./roles.ts";
import { Timestamp } from "./values.ts";

export const TokenId = z
  .uuid()
  .meta(namedBy({ list: "listTokens", name: "name", id: "id" }))
  .brand<"TokenId">();
export type TokenId = z.output<typeof TokenId>;

/** The longest life of a token that the API makes. Every such token expires. */
export const MOST_TOKEN_DAYS = 366;
/** The longest time for which the old token stays valid after the rotation of a token. */
const MOST_OVERLAP_SECONDS = 7 * 86_400;
const MOST_SITES_OF_A_TOKEN = 100;

export const TokenName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, "must be letters, digits, '.', '_' and '-', 63 at most");
const ExpiresInDays = z.int().min(1).max(MOST_TOKEN_DAYS).describe("Days until the token expires");

export const TokenCreate = z
  .strictObject({
    name: TokenName.describe("Name of the token, which the audit names as the actor"),
    role: z.enum(API_ROLES),
    site_ids: z
      .array(SiteId)
      .min(1)
      .max(MOST_SITES_OF_A_TOKEN)
      .describe("The sites to which the token is limited; without sites the token is for the whole hub")
      .optional(),
    tenant: Tenant.nullable().describe("The tenant of a token with the role tenant or repair").default(null),
    expires_in_days: ExpiresInDays,
  })
  .superRefine(({ role, tenant }, context) => {
    if (isRoleOfTenants(role) !== (tenant !== null))
      context.addIssue({
        code: "custom",
        path: ["tenant"],
        message: isRoleOfTenants(role) ? `is needed for the role ${role}` : `does not fit the role ${role}`,
      });
  });
export type TokenCreate = z.output<typeof TokenCreate>;

export const TokenRotate = z.strictObject({
  overlap_seconds: z
    .int()
    .min(0)
    .max(MOST_OVERLAP_SECONDS)
    .describe("Seconds for which the old token stays valid beside the new one")
    .default(3600),
  expires_in_days: ExpiresInDays,
});
export const TokenRevoke = z.strictObject({ reason: Reason });

const TOKEN_STATUSES = ["valid", "expired", "revoked"] as const;

export const Token = z.strictObject({
  id: TokenId,
  name: z.string(),
  role: z.enum(API_ROLES),
  site_ids: z.array(SiteId).nullable(),
  tenant: z.string().nullable(),
  status: z.enum(TOKEN_STATUSES),
  /** The last four characters of the token, by which a person recognizes it; null for a token of an older version. */
  last_four: z.string().nullable(),
  created_by: z.string().nullable(),
  created_at: Timestamp,
  /** When the token expires; null only for the hub's first token and for tokens that an older version of the hub made. */
  expires_at: Timestamp.nullable(),
  /** The hub writes the last use of a token at most once a minute. */
  last_used_at: Timestamp.nullable(),
  revoked_at: Timestamp.nullable(),
  /** The time until which the old token stays valid after a rotation. */
  previous_valid_until: Timestamp.nullable(),
});
export type Token = z.output<typeof Token>;
/** The answer to the creation or rotation of a token: the only answer that ever contains the token itself. */
export const TokenSecret = z.strictObject({ ...Token.shape, token: z.string() });
