import { REVOKE_STEPS } from "../../shared/tasks/allocation-revoke-user.ts";
import type { TaskHandlers, TaskInput, TaskReply } from "../../shared/tasks/index.ts";
import { parseAccounts, parseSubIds, usableSubUids } from "../accounts/account-files.ts";
import { type AllocationRecord, readRecord, writeRecord } from "../accounts/allocation-record.ts";
import type { EndTiming } from "../accounts/end-processes.ts";
import { removeAccount, removeHome } from "../accounts/home-and-account.ts";
import { removeSysvIpc } from "../accounts/ipc.ts";
import { removeAtJobs, removeCrontabs } from "../accounts/jobs.ts";
import { removeKeyrings } from "../accounts/keyrings.ts";
import { endLinger, endSessions, endTenantProcesses, lockAccount, removeSudo } from "../accounts/logins.ts";
import { removePosixIpc } from "../accounts/posix-ipc.ts";
import { allWays, rootAccessStep, waysToRoot } from "../accounts/root-access.ts";
import { cleaningStep } from "../accounts/step.ts";
import type { Revocation, RevokeStep, RevokeStepName, Tenant } from "../accounts/tenant.ts";
import { removeMail, removeRuntimeFolder, removeSubIds } from "../accounts/traces.ts";
import { messageOf } from "../message-of.ts";
import type { System } from "../system/system.ts";

type Type = "allocation.revoke_user";
type Input = TaskInput<Type>;
type Part = (revocation: Revocation) => Promise<RevokeStep>;

/** The cleaning steps that prevent new processes of the tenant, before the agent ends the running processes. */
const BEFORE: Partial<Record<RevokeStepName, Part>> = {
  lock: lockAccount,
  sudo: removeSudo,
  linger: endLinger,
  sessions: endSessions,
};
const AFTER: Partial<Record<RevokeStepName, Part>> = {
  cron: removeCrontabs,
  at: removeAtJobs,
  sysv_ipc: removeSysvIpc,
  posix_ipc: removePosixIpc,
  keyrings: removeKeyrings,
  runtime_folder: removeRuntimeFolder,
  mail: removeMail,
  sub_ids: removeSubIds,
  home: removeHome,
};

/**
 * Removes a tenant's account with everything that runs or waits for it. The agent removes the account itself last, so that a restarted agent still
 * finds the account. After a failed step the removal of the tenant's account continues, and the step's message says what is left on the host.
 */
export const revokeUser =
  (system: System, timing?: EndTiming): TaskHandlers[Type] =>
  async (input, run) => {
    const record = await readRecord(system, input.allocation_id);
    const refused = await refusal(system, input, record);
    if (refused !== null) return refused;
    if (record === null) return { ok: true, result: { uid: null, steps: nothingToDo(input), root_by: [] } };
    const tenant = await tenantOf(system, record);
    const rootBy = allWays(record.root_by ?? [], await waysToRoot(system, tenant));
    if (!input.plan && record.state !== "revoked")
      await writeRecord(system, { ...record, state: "revoking", root_by: rootBy });
    const steps: RevokeStep[] = [rootAccessStep(tenant, rootBy, input.plan)];
    const revocation = (step: RevokeStepName): Revocation => {
      run.signal.throwIfAborted();
      const alive = (): void => run.progress({ step });
      alive();
      return { system, tenant, plan: input.plan, signal: run.signal, alive };
    };
    const work = async (parts: Partial<Record<RevokeStepName, Part>>): Promise<void> => {
      for (const name of REVOKE_STEPS) {
        const part = parts[name];
        if (part !== undefined) steps.push(await attempt(name, tenant, () => part(revocation(name)), run.signal));
      }
    };
    await work(BEFORE);
    const ended = await endTenantProcesses(revocation("processes"), timing);
    if (ended.survivors !== null) return survive(input, ended.survivors);
    steps.push(ended.step);
    await work(AFTER);
    const account = await attempt("account", tenant, () => removeAccount(revocation("account")), run.signal);
    if (account.outcome === "failed")
      return { ok: false, error: "account_remains", message: `${input.login_user}: ${account.message}` };
    steps.push(account);
    if (!input.plan && record.state !== "revoked")
      await writeRecord(system, { ...record, state: "revoked", root_by: rootBy });
    return { ok: true, result: { uid: record.uid, steps, root_by: rootBy } };
  };

async function attempt(
  name: RevokeStepName,
  tenant: Tenant,
  part: () => Promise<RevokeStep>,
  signal: AbortSignal,
): Promise<RevokeStep> {
  try {
    return await part();
  } catch (error) {
    signal.throwIfAborted();
    return cleaningStep(name, tenant.loginUser, "failed", messageOf(error));
  }
}

const survive = ({ login_user }: Input, survivors: string): TaskReply<Type> => ({
  ok: false,
  error: "processes_survive",
  message: `Processes of ${login_user} did not end after SIGKILL: ${survivors} The account is locked and still there. Reboot the host.`,
});

/** Returns why the account with the tenant's login name is not Muster's, or null if it is. */
async function refusal(system: System, input: Input, record: AllocationRecord | null): Promise<TaskReply<Type> | null> {
  const accounts = parseAccounts(await system.read("/etc/passwd"));
  const foreign = (message: string): TaskReply<Type> => ({
    ok: false,
    error: "not_our_account",
    message: `${message} Nothing was changed. Look at the account on the host, or reimage the host.`,
  });
  const named = accounts.find(({ name }) => name === input.login_user);
  if (record === null)
    return named === undefined
      ? null
      : foreign(
          `The account ${input.login_user} has uid ${named.uid}, and Muster made no account for this allocation.`,
        );
  if (record.login_user !== input.login_user)
    return foreign(`Muster made the account ${record.login_user} for this allocation, and not ${input.login_user}.`);
  if (named !== undefined && named.uid !== record.uid)
    return foreign(`The account ${input.login_user} has uid ${named.uid}, and Muster made it with uid ${record.uid}.`);
  const alias = accounts.find(({ name, uid }) => uid === record.uid && name !== input.login_user);
  return alias === undefined
    ? null
    : foreign(`The uid ${record.uid} of this allocation also has the account ${alias.name}.`);
}

async function tenantOf(system: System, record: AllocationRecord): Promise<Tenant> {
  const { allocation_id: allocationId, login_user: loginUser, uid, home } = record;
  const accounts = parseAccounts(await system.read("/etc/passwd"));
  const subUids = usableSubUids(parseSubIds(await system.read("/etc/subuid")), accounts, loginUser, uid);
  return { allocationId, loginUser, uid, home, subUids };
}

/** The cleaning steps for the removal of a tenant's account on a host whose present image never had the account. */
const nothingToDo = ({ login_user, plan }: Input): RevokeStep[] =>
  REVOKE_STEPS.map((step) =>
    cleaningStep(
      step,
      login_user,
      plan ? "planned" : "ok",
      "This host's image never had an account for the allocation.",
    ),
  );
