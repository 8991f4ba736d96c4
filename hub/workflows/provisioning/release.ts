import { failure } from "../../../shared/failures.ts";
import { RESTORED } from "../../../shared/health-report.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import { listHealthOverrides } from "../../db/queries/node-health-overrides.ts";
import { MaasError, type MaasMachine } from "../../maas/port.ts";
import type { Failed, Wait } from "../engine/stage.ts";
import { StageFailure } from "../stage-failure.ts";
import { maasOf, type ProvisionContext, systemIdOf } from "./context.ts";
import { freshMachine, judgeMachine, waitForMachine } from "./machine.ts";
import type { ProvisionState } from "./provision-state.ts";

/**
 * The hub repeats its request to abort a deploy only after `ABORT_SHOWS_WITHIN_SECONDS`. After an abort, MAAS changes the machine's status only when
 * MAAS has powered the machine off (maas 2.6).
 */
const ABORT_SHOWS_WITHIN_SECONDS = 120;

export type ReleaseStep = { readonly kind: "ready" } | Wait<ProvisionState> | Failed<ProvisionState>;

/**
 * Makes one step, an abort, a release or a wait, to bring the machine of a failed deploy back to Ready (lifecycle 4.3). The caller of
 * `stepBackToReady` calls it again until the machine is Ready and the result is `ready`. The hub never releases a machine that the workflow did not
 * deploy.
 */
export async function stepBackToReady(
  at: "recover_for_datasource_retry" | "compensation",
  context: ProvisionContext,
  why: string,
): Promise<ReleaseStep> {
  const machine = await freshMachine(context);
  const verdict = await judgeMachine(at, context, machine);
  const comment = `muster ${context.operation} ${context.workflowId}: ${why}`;
  switch (verdict.kind) {
    case "go_on":
      return { kind: "ready" };
    case "failed":
      return verdict;
    case "abort": {
      if (!abortIsUnderWay(context))
        await acceptConflict(async () => (await maasOf(context)).abort(systemIdOf(context), comment));
      const at = context.state.abort_requested_at ?? context.now.toISOString();
      const patch = { abort_requested_at: abortIsUnderWay(context) ? at : context.now.toISOString() };
      return { ...waitForMachine(context, "MAAS to abort the deploy"), patch };
    }
    case "release":
      await mustBeKnownUnused(context, machine);
      await acceptConflict(async () => (await maasOf(context)).release(systemIdOf(context), { comment }));
      return {
        ...waitForMachine(context, "MAAS to release the machine"),
        seconds: 5,
        patch: { abort_requested_at: null },
      };
    default:
      return waitForMachine(context, `MAAS to release the machine ('${machine.statusName}')`);
  }
}

/**
 * After a restore of the database, the workflow's row may be older than a deploy that has ended since, and the deployed host may have a tenant. After
 * a restore of the database, only a person can know that nobody uses a deployed host, and then removes the health override `restore`.
 */
async function mustBeKnownUnused({ services, host }: ProvisionContext, machine: MaasMachine): Promise<void> {
  if (machine.status !== MAAS_STATUS.deployed) return;
  const overrides = await listHealthOverrides(services.db, [host.nodeId]);
  if (!overrides.some(({ source }) => source === RESTORED)) return;
  const message = `Machine ${host.hostname} is Deployed, and the restored database does not know who uses it. Look at the host. If nobody uses it, remove the health override ${RESTORED} and continue.`;
  throw new StageFailure(
    failure("state_ambiguity", "node_state_conflict", message, { maas_system_id: machine.systemId }),
  );
}

function abortIsUnderWay({ state, now }: ProvisionContext): boolean {
  const at = state.abort_requested_at;
  return typeof at === "string" && now.getTime() - Date.parse(at) < ABORT_SHOWS_WITHIN_SECONDS * 1000;
}

/** A conflict means that the machine's status changed between the observation and the call, so the next step reads the machine anew. */
async function acceptConflict(call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (error instanceof MaasError && error.code === "state_conflict") return;
    throw error;
  }
}
