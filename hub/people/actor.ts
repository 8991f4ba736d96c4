import type { ApiRole } from "../../shared/api/roles.ts";
import type { Reach } from "../db/queries/reach.ts";

/**
 * The person or program that sent a request: the name for audits and messages, what the caller may do (`role`), and to which objects (`sites` and
 * `tenant`, see `Reach`).
 */
export interface Actor extends Reach {
  readonly name: string;
  /** How the caller proved who the caller is; `none` stands for a request to a public route. */
  readonly via: "token" | "session" | "oidc" | "none";
  readonly role: ApiRole;
  /** The id of the API token in the request; null for a request without an API token. */
  readonly tokenId: string | null;
  /** The id of the person who signed in; null for a program. */
  readonly personId: string | null;
  /** The identity provider's id (`sub`) of the holder of an access token that may not be a person's (`isOfPerson` is false). */
  readonly machineId?: string;
  /** What the access token of the request says about the person, as far as roles depend on it, and when the access token ends. */
  readonly accessToken?: { readonly claims: Readonly<Record<string, unknown>>; readonly until: Date };
}

/** The actor of a request to a public route, which needs no right. */
export const ANYBODY: Actor = {
  name: "anonymous",
  via: "none",
  role: "viewer",
  sites: [],
  tenant: null,
  tokenId: null,
  personId: null,
};
