import { z } from "zod";
import { API_ROLES, isRoleOfTenants } from "../../shared/api/roles.ts";

const Name = z.string().min(1).max(256);
/**
 * The `claim` of a role rule is a text that names a claim of the token, or a list of texts. A list of texts in a role rule is the path to a claim
 * inside other claims, for example `["realm_access", "roles"]`.
 */
const ClaimPath = z.union([Name, z.array(Name).min(1).max(8)]);

const RoleRule = z
  .strictObject({
    claim: ClaimPath,
    value: Name,
    role: z.enum(API_ROLES),
    /** The names of the sites on which the role is valid. A role rule without `sites` gives its role on all sites. */
    sites: z.array(Name).min(1).max(100).optional(),
    tenant: Name.optional(),
  })
  .refine(
    ({ role, tenant }) => isRoleOfTenants(role) === (tenant !== undefined),
    "the roles tenant and repair need a tenant, and no other role may have one",
  );
export type RoleRule = z.output<typeof RoleRule>;
export const RoleRules = z.array(RoleRule).min(1).max(500);

/** The claims of a person or machine, as the sign-in provider has signed them. */
export type Claims = Readonly<Record<string, unknown>>;

export type Grant =
  | {
      readonly kind: "granted";
      readonly role: RoleRule["role"];
      /** The names of the sites on which the role is valid; null means all sites. */
      readonly sites: readonly string[] | null;
      readonly tenant: string | null;
    }
  | { readonly kind: "no_role" }
  /** The provider has sent a link in place of the values of the claim, because the claim has too many values for a token. */
  | { readonly kind: "groups_overage"; readonly claim: string };

/**
 * Decides which rights the claims of a person or machine give. The first matching role rule decides the role and the tenant. Each later matching role
 * rule with the same role and tenant adds its sites. A person or machine whose claims match no role rule has no access.
 */
export function grantOf(claims: Claims, rules: readonly RoleRule[]): Grant {
  const matching = rules.filter((rule) => valuesAt(claims, pathOf(rule)).includes(rule.value));
  const [first] = matching;
  if (first === undefined) {
    const left = rules.map((rule) => pathOf(rule)[0] ?? "").find((claim) => isLeftOut(claims, claim));
    return left === undefined ? { kind: "no_role" } : { kind: "groups_overage", claim: left };
  }
  const tenant = first.tenant ?? null;
  const same = matching.filter((rule) => rule.role === first.role && (rule.tenant ?? null) === tenant);
  const everywhere = same.some((rule) => rule.sites === undefined);
  const sites = everywhere ? null : [...new Set(same.flatMap((rule) => rule.sites ?? []))];
  return { kind: "granted", role: first.role, sites, tenant };
}

/**
 * The part of the claims that the rules read, so that a session stores no more about a person than its rights need. `picked` also keeps the claims by
 * which a provider says that it left a claim out of the token.
 */
export function picked(claims: Claims, rules: readonly RoleRule[]): Claims {
  const names = new Set([...rules.map((rule) => pathOf(rule)[0] ?? ""), ...OVERAGE]);
  const wanted = new Set(rules.map(({ value }) => value));
  return Object.fromEntries(
    [...names].flatMap((name) => (Object.hasOwn(claims, name) ? [[name, onlyWanted(claims[name], wanted)]] : [])),
  );
}

/** Removes from the lists inside a claim the values that no role rule names. A person may be in hundreds of groups that mean nothing to Muster. */
function onlyWanted(value: unknown, wanted: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.filter((one) => wanted.has(one));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, onlyWanted(inner, wanted)]));
}

const pathOf = ({ claim }: RoleRule): readonly string[] => (typeof claim === "string" ? [claim] : claim);

function valuesAt(claims: Claims, path: readonly string[]): readonly unknown[] {
  let at: unknown = claims;
  for (const name of path) {
    if (typeof at !== "object" || at === null || Array.isArray(at) || !Object.hasOwn(at, name)) return [];
    at = (at as Claims)[name];
  }
  if (Array.isArray(at)) return at;
  // OAuth writes the list of scopes as one text with spaces (RFC 8693).
  return path.length === 1 && path[0] === "scope" && typeof at === "string" ? at.split(" ") : [at];
}

/** Entra ID marks a left-out list of groups by `hasgroups`, or by the claim's name in `_claim_names` (distributed claims of OpenID Connect). */
const OVERAGE = ["_claim_names", "hasgroups"] as const;

function isLeftOut(claims: Claims, claim: string): boolean {
  const named = claims["_claim_names"];
  const distributed = typeof named === "object" && named !== null && Object.hasOwn(named, claim);
  return distributed || (claim === "groups" && (claims["hasgroups"] === true || claims["hasgroups"] === "true"));
}
