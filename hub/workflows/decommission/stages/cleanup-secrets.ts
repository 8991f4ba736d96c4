import { failure } from "../../../../shared/failures.ts";
import { recordAudit } from "../../../db/queries/audit-logs.ts";
import { lockLogin, otherHostsOf } from "../../../db/queries/decommission-secrets.ts";
import { writeSecrets } from "../../../db/queries/decommissions.ts";
import { disablePowerOverride } from "../../../db/queries/power-overrides.ts";
import { readWorkflow } from "../../../db/queries/workflows.ts";
import type { ChosenSecret } from "../../../db/schema/index.ts";
import type { Tx } from "../../../db/tx.ts";
import type { Observation, Outcome } from "../../engine/stage.ts";
import { inFencedTx, UPSTREAM_RETRY } from "../../services.ts";
import { choose, nameOf, versionAt } from "../chosen-secrets.ts";
import type { DecommissionContext, DecommissionStageOf, DecommissionState } from "../decommission-context.ts";
import { maasOf, machineOf } from "../release-machine.ts";

/** The stage `cleanup_secrets` waits `SECONDS` for an unavailable secret store before a person has to look at the store. */
const SECONDS = 3_600;

const isOpen = ({ outcome }: ChosenSecret): boolean => outcome === "chosen" || outcome === "removing";
const kept = (secret: ChosenSecret, reason: string): ChosenSecret => ({ ...secret, outcome: "kept", reason });

async function look(context: DecommissionContext): Promise<Observation<DecommissionState>> {
  const { secrets, decommissionId } = context.decommission;
  if (secrets === null) {
    // A decommission that began under an older version of Muster did not choose before the release which secrets to remove.
    const machine = await (await maasOf(context)).readMachine(machineOf(context).systemId);
    const chosen = await choose(context, machine);
    const commit = (tx: Tx) => writeSecrets(tx, decommissionId, chosen);
    return { kind: "wait", reason: "The choice of the secrets to remove", seconds: 0, commit };
  }
  return secrets.some(isOpen) ? { kind: "not_started" } : done(secrets);
}

function done(secrets: readonly ChosenSecret[]): Extract<Outcome<DecommissionState>, { readonly kind: "done" }> {
  const removed = secrets.filter(({ outcome }) => outcome === "removed").map(nameOf);
  const left = secrets
    .filter(({ outcome }) => outcome === "kept")
    .map((one) => `${nameOf(one)}, because ${one.reason}`);
  const told =
    removed.length > 0
      ? `Removed: ${removed.join(", ")}`
      : left.length > 0
        ? "No secret was removed"
        : "The secret store has no secret of this node";
  const besides = left.length === 0 ? "" : `. Not removed: ${left.join("; ")}`;
  return {
    kind: "done",
    message: `${told}${besides}`.slice(0, 2_000),
    details: { removed_secrets: removed, kept_secrets: left },
  };
}

async function run(context: DecommissionContext): Promise<Outcome<DecommissionState>> {
  let secrets = context.decommission.secrets ?? [];
  for (const [index, secret] of secrets.entries()) {
    if (!isOpen(secret)) continue;
    const write = (now: ChosenSecret, tx: Tx): Promise<void> => {
      secrets = secrets.with(index, now);
      return writeSecrets(tx, context.decommission.decommissionId, secrets);
    };
    await removeOne(context, secret, write);
  }
  return done(secrets);
}

type WriteDown = (now: ChosenSecret, tx: Tx) => Promise<void>;

/**
 * Removes one secret that the stage `choose_secrets` has chosen, if the secret's version has not changed since then. Before the removal of a BMC
 * login's secret, the hub disables the login and records the removal. The API refuses to write a login whose removal is recorded, so a removal that
 * resumes after a crash deletes no newer login.
 */
async function removeOne(context: DecommissionContext, secret: ChosenSecret, write: WriteDown): Promise<void> {
  const version = await versionAt(context, secret.path);
  if (version !== "absent" && version !== secret.version) {
    const reason = "somebody wrote another secret there after the operation had chosen this one";
    return inFencedTx(context, (tx) => write(kept(secret, reason), tx));
  }
  const now = await inFencedTx(context, async (tx) => {
    const next = await begin(tx, context, secret, version);
    await write(next, tx);
    return next;
  });
  if (now.outcome !== "removing") return;
  if (version !== "absent") await context.services.secrets.remove(secret.path);
  await inFencedTx(context, (tx) => write({ ...now, outcome: "removed" }, tx));
}

/** Disables the BMC login, unless somebody has changed the login since the stage `choose_secrets`, or another host may use the login. */
async function begin(
  tx: Tx,
  context: DecommissionContext,
  secret: ChosenSecret,
  version: string,
): Promise<ChosenSecret> {
  const { login } = secret;
  const removing: ChosenSecret = { ...secret, outcome: "removing" };
  if (login === null || secret.outcome === "removing") return removing;
  const row = await lockLogin(tx, login.id);
  // Since the stage `choose_secrets`, an operator may have deleted the BMC login; a deletion disables the login's row and removes the login's secret.
  if (row?.status === "disabled" && version === "absent") return { ...secret, outcome: "removed" };
  if (row?.changedAt !== login.changedAt) return kept(secret, "somebody changed it after the operation had chosen it");
  const { siteId } = machineOf(context);
  const others = await otherHostsOf(tx, { siteId, nodeId: context.node.id }, row);
  if (others.length > 0) return kept(secret, `it may be the login of ${others.join(", ")}`);
  await disablePowerOverride(tx, login.id);
  await auditDisabled(tx, context, login, row.status);
  return removing;
}

async function auditDisabled(
  tx: Tx,
  { decommission, node, workflowId }: DecommissionContext,
  { id, selector }: NonNullable<ChosenSecret["login"]>,
  status: string,
): Promise<void> {
  await recordAudit(tx, {
    actor: (await readWorkflow(tx, workflowId))?.requestedBy ?? "muster",
    role: "system",
    action: "decommission.disable_login",
    target: `power-credential-overrides/${id}`,
    reason: decommission.reason,
    requestId: null,
    details: {
      decommission_id: workflowId,
      node_id: node.id,
      selector,
      prior: { status },
      expected: { status: "disabled" },
    },
  });
}

/**
 * Removes the secrets that the stage `choose_secrets` has chosen (lifecycle 5.4). The stage `cleanup_secrets` keeps the site's secrets, the secrets
 * of other hosts, and BMC logins that somebody wrote after `choose_secrets` ran.
 */
export const cleanupSecrets: DecommissionStageOf<"cleanup_secrets"> = {
  name: "cleanup_secrets",
  title: "Remove the node's secrets from the secret store",
  reentry: { rule: "observe_first", observe: look },
  timeout: {
    seconds: () => SECONDS,
    failure: ({ node }) =>
      failure(
        "upstream_transient",
        "secret_store_timeout",
        `The secrets of node ${node.hostname} were not removed within ${SECONDS} s.`,
        { node_id: node.id, timeout_seconds: SECONDS },
      ),
  },
  retry: UPSTREAM_RETRY,
  run,
};
