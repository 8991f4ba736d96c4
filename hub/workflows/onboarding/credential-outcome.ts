import type { Failure } from "../../../shared/failures.ts";
import { recordCredentialFailure, recordCredentialWorked } from "../../db/queries/credential-uses.ts";
import type { Workflow as WorkflowRow } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { OnboardState } from "./onboard-state.ts";

export type LoginOutcome =
  | { readonly kind: "worked"; readonly path: string; readonly at: Date }
  | { readonly kind: "failed"; readonly path: string };

/**
 * A failed power action or a missing secret counts as a failure of the BMC login. A failed power action counts even if MAAS reports no refused
 * password, because BMC drivers report a refused password in different ways. A successful deploy proves that MAAS could log in to the BMC. An
 * onboarding proves nothing about its BMC login if it had no successful deploy, no failed power action and no missing secret.
 */
export function loginOutcome(state: Partial<OnboardState>, failure: Failure | null): LoginOutcome | null {
  const { power_credentials_path: path, deployed_at: deployedAt } = state;
  if (failure?.code === "secret_missing") {
    const missing = failure.evidence["secret_path"];
    return typeof missing === "string" ? { kind: "failed", path: missing } : null;
  }
  if (path === null || path === undefined) return null;
  if (failure?.code === "power_action_failed" || failure?.code === "bmc_login_refused") return { kind: "failed", path };
  return deployedAt === null || deployedAt === undefined ? null : { kind: "worked", path, at: new Date(deployedAt) };
}

export async function recordPowerLogin(tx: Tx, row: WorkflowRow, failure: Failure | null): Promise<void> {
  const state = OnboardState.partial().safeParse(row.state);
  const outcome = state.success ? loginOutcome(state.data, failure) : null;
  // A secret of one host, such as its user-data, is not a login of the site.
  if (outcome === null || row.siteId === null || !outcome.path.includes(row.siteId)) return;
  const place = { siteId: row.siteId, path: outcome.path };
  if (outcome.kind === "worked") await recordCredentialWorked(tx, place, outcome.at);
  else if (failure !== null) await recordCredentialFailure(tx, place, failure);
}
