import { ApiError } from "../../shared/api/errors.ts";
import { siteIdsOf } from "../db/queries/maas-sites.ts";
import type { Db } from "../db/tx.ts";
import type { Actor } from "../people/actor.ts";
import { type Claims, type Grant, grantOf } from "./role-rules.ts";
import type { RolesFile } from "./roles-file.ts";

interface SignedIn {
  readonly via: "session" | "oidc";
  /** The sign-in provider's lasting name of the person or machine. */
  readonly subject: string;
  readonly name: string;
  readonly claims: Claims;
}

const CONTROL = /\p{C}/gu;
/** A person may choose a name that a token has, so the names of people in the audit begin with a word that no token's name begins with. */
const PREFIX = "oidc:";

/**
 * Returns the name by which the audit and the page show a person or machine. The provider's claim `sub` identifies a person; the shown name does not,
 * because a person may change it.
 */
export function nameOf(claims: Claims, subject: string): string {
  // `nameOf` does not use the claim `client_id` as a name, because all people who sign in by one client have the same `client_id`.
  const given = [claims["preferred_username"], claims["email"], claims["name"]].find(
    (one) => typeof one === "string" && one.trim() !== "",
  );
  return (
    PREFIX +
    String(given ?? subject)
      .replace(CONTROL, "")
      .slice(0, 120)
  );
}

/**
 * Returns what the person or machine may do by the role rules that are in force now. Throws `no_role` or `groups_left_out` if the rules give no
 * right.
 */
export async function personActor({ via, subject, name, claims }: SignedIn, roles: RolesFile, db: Db): Promise<Actor> {
  const grant = grantOf(claims, await roles.rules());
  if (grant.kind !== "granted") throw refusalOf(grant, name);
  return { ...(await reachOf(grant, db)), name, via, tokenId: null, personId: subject };
}

/** Returns the role, the sites and the tenant that the present role rules give to the claims of a person or machine; null if they give no role. */
export async function grantNow(claims: Claims, roles: RolesFile, db: Db): Promise<Granted | null> {
  const grant = grantOf(claims, await roles.rules());
  return grant.kind === "granted" ? reachOf(grant, db) : null;
}

type Granted = Pick<Actor, "role" | "sites" | "tenant">;
const reachOf = async ({ role, sites, tenant }: Extract<Grant, { kind: "granted" }>, db: Db): Promise<Granted> => ({
  role,
  sites: sites === null ? null : await siteIdsOf(db, sites),
  tenant,
});

const refusalOf = (grant: Exclude<Grant, { kind: "granted" }>, name: string): ApiError =>
  grant.kind === "no_role"
    ? new ApiError(
        "no_role",
        `You are signed in as ${name}, but no rule of this hub gives you a role. Ask an administrator of the hub to add you to a group that has a role, or to add a rule to the file of MUSTER_OIDC_ROLES_FILE. Then sign in again.`,
      )
    : new ApiError(
        "groups_left_out",
        `You are signed in as ${name}, but the provider has left out your claim ${grant.claim}, because you are in too many groups for a token. The hub cannot tell which role you have. Ask an administrator of the provider to send only the groups of this application, or to give you an application role.`,
      );
