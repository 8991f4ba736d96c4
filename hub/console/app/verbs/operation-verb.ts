import { api, read } from "../api/client.ts";
import type { Given } from "./verb-dialog.tsx";

/** For each verb of an operation, the last part of its path in the API. */
const PATH = {
  retry: "retry",
  resume: "resume",
  rerun: "rerun",
  restart_clean: "restart-clean",
  adopt: "adopt",
  cancel: "cancel",
  mark_manual_intervention: "mark-manual-intervention",
} as const;
export type OperationVerb = keyof typeof PATH;

/** Gives an operation a verb. An onboarding has routes of its own. */
export function giveOperation(
  verb: OperationVerb,
  { operation_id: id, kind }: { readonly operation_id: string; readonly kind: string },
  { reason, headers }: Given,
): Promise<unknown> {
  const request = { params: { path: { id }, header: headers }, body: { reason } };
  return kind === "onboarding"
    ? read(api.POST(`/api/v1/admin/onboardings/{id}/${PATH[verb]}`, request))
    : read(api.POST(`/api/v1/admin/decommissions/{id}/${PATH[verb]}`, request));
}
