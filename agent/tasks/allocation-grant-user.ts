import type { GRANT_STEPS } from "../../shared/tasks/allocation-grant-user.ts";
import type { TaskHandlers, TaskInput, TaskReply } from "../../shared/tasks/index.ts";
import { type Account, parseAccounts, parseGroups, passwordField } from "../accounts/account-files.ts";
import { type AllocationRecord, isNamed, readRecord, takeUid, writeRecord } from "../accounts/allocation-record.ts";
import { cleaningStep } from "../accounts/step.ts";
import { sudoersFile, sudoersText, uncheckedSudoersFile } from "../accounts/sudoers.ts";
import { messageOf } from "../message-of.ts";
import type { System } from "../system/system.ts";

type Type = "allocation.grant_user";
type Input = TaskInput<Type>;
type StepName = (typeof GRANT_STEPS)[number];
type Step = ReturnType<typeof cleaningStep<StepName>>;
type Failure = Extract<TaskReply<Type>, { ok: false }>;

const TOOL_TIMEOUT_MS = 30_000;
const SHELL = "/bin/bash";
/** In /etc/shadow, `*` is a hash that no password has. With a hash that begins with `!`, an sshd without PAM would refuse SSH keys too. */
const NO_PASSWORD = "*";
const commentOf = (allocationId: string): string => `Muster allocation ${allocationId}`;

/**
 * Makes a tenant's account step by step, and continues an account that a killed agent began. On a complete account, `allocation.grant_user` changes
 * only the SSH keys and the sudo rights.
 */
export const grantUser =
  (system: System): TaskHandlers[Type] =>
  async (input, run) => {
    const steps: Step[] = [];
    let step = "record" as StepName;
    const begin = (next: StepName): void => {
      run.signal.throwIfAborted();
      step = next;
      run.progress({ step: next });
    };
    try {
      const refused = await refusal(system, input);
      if (refused !== null) return refused;
      if (input.plan) return { ok: true, result: await plan(system, input) };
      begin("record");
      const record = await ensureRecord(system, input);
      steps.push(
        cleaningStep("record", input.allocation_id, "ok", `The uid ${record.uid} is reserved.`, { uid: record.uid }),
      );
      begin("group");
      steps.push(await ensureGroup(system, record));
      begin("account");
      steps.push(await ensureAccount(system, record));
      begin("home");
      steps.push(await ensureHome(system, record));
      begin("keys");
      steps.push(await writeKeys(system, record, input));
      begin("sudo");
      steps.push(await setSudo(system, record, input.root));
      await writeRecord(system, { ...record, state: "granted" });
      return { ok: true, result: { uid: record.uid, steps } };
    } catch (error) {
      run.signal.throwIfAborted();
      return {
        ok: false,
        error: step === "keys" ? "keys_failed" : "account_failed",
        message: `The account ${input.login_user} is not complete: the step ${step} failed: ${messageOf(error)}`,
      };
    }
  };

/** Returns why the agent may not make the tenant's account, or null if it may. */
async function refusal(system: System, input: Input): Promise<Failure | null> {
  const { allocation_id, login_user } = input;
  const record = await readRecord(system, allocation_id);
  if (record !== null && (record.state === "revoking" || record.state === "revoked"))
    return {
      ok: false,
      error: "allocation_ended",
      message: `The account of allocation ${allocation_id} was revoked on this host. Make a new allocation.`,
    };
  if (record !== null && record.login_user !== login_user)
    return exists(`Allocation ${allocation_id} already has the account ${record.login_user} on this host.`);
  const account = parseAccounts(await system.read("/etc/passwd")).find(({ name }) => name === login_user);
  if (account !== undefined && !(record !== null && isOurs(account, record)))
    return exists(`This host already has an account ${login_user}, with uid ${account.uid}, that Muster did not make.`);
  const group = parseGroups(await system.read("/etc/group")).find(({ name }) => name === login_user);
  if (group !== undefined && group.gid !== record?.uid)
    return exists(`This host already has a group ${login_user}, with gid ${group.gid}, that Muster did not make.`);
  if (account === undefined && (await isNamed(system, "passwd", login_user)))
    return exists(`This host gets an account ${login_user} from a directory service.`);
  if (group === undefined && (await isNamed(system, "group", login_user)))
    return exists(`This host gets a group ${login_user} from a directory service.`);
  return null;
}

const exists = (message: string): Failure => ({
  ok: false,
  error: "account_exists",
  message: `${message} Choose another login name, or remove the account or group.`,
});

/**
 * Whether Muster made an account, as the allocation's record on the host proves and the account's comment shows to people. A tenant with root rights
 * may have changed the account's comment.
 */
const isOurs = (account: Account, record: AllocationRecord): boolean =>
  account.uid === record.uid && (record.state === "granted" || account.comment === commentOf(record.allocation_id));

async function plan(system: System, input: Input): Promise<{ uid: number | null; steps: Step[] }> {
  const { allocation_id, login_user } = input;
  const record = await readRecord(system, allocation_id);
  const home = `/home/${login_user}`;
  const has = await system.entry(home);
  const rights = input.root ? "would get all rights by sudo" : "would get no sudo rights";
  const planned = (step: StepName, target: string, message: string) => cleaningStep(step, target, "planned", message);
  return {
    uid: record?.uid ?? null,
    steps: [
      planned(
        "record",
        allocation_id,
        record === null ? "A new uid would be reserved." : `The uid ${record.uid} is reserved.`,
      ),
      planned("group", login_user, "The account would have a group of its own."),
      planned("account", login_user, `The account would have the shell ${SHELL} and no password.`),
      planned("home", home, has === null ? "The home would be made." : "There is something at the home's path."),
      planned("keys", `${home}/.ssh/authorized_keys`, `The file would have ${input.ssh_keys.length} keys.`),
      planned("sudo", sudoersFile(allocation_id), `The account ${rights}.`),
    ],
  };
}

async function ensureRecord(system: System, input: Input): Promise<AllocationRecord> {
  const present = await readRecord(system, input.allocation_id);
  if (present !== null) return present;
  const record: AllocationRecord = {
    allocation_id: input.allocation_id,
    login_user: input.login_user,
    uid: await takeUid(system, input.lowest_uid),
    home: `/home/${input.login_user}`,
    state: "granting",
  };
  await writeRecord(system, record);
  return record;
}

async function ensureGroup(system: System, { login_user, uid }: AllocationRecord): Promise<Step> {
  const has = parseGroups(await system.read("/etc/group")).some(({ name, gid }) => name === login_user && gid === uid);
  if (!has) await tool(system, "groupadd", ["--gid", String(uid), login_user]);
  return cleaningStep("group", login_user, "ok", has ? "The group was there." : "The group was made.", { gid: uid });
}

async function ensureAccount(system: System, record: AllocationRecord): Promise<Step> {
  const { login_user, uid } = record;
  const isComplete = async (): Promise<boolean> => {
    const account = parseAccounts(await system.read("/etc/passwd")).find(({ name }) => name === login_user);
    return account?.uid === uid && passwordField(await system.read("/etc/shadow"), login_user) !== null;
  };
  const was = await isComplete();
  if (!was) {
    // A killed `useradd` may have left an account in only one of /etc/passwd and /etc/shadow.
    const half = parseAccounts(await system.read("/etc/passwd")).some(({ name }) => name === login_user);
    if (half) await tool(system, "userdel", [login_user]);
    if (half) await ensureGroup(system, record);
    await tool(system, "useradd", useraddArguments(record));
  }
  if (!(await isComplete())) throw new Error(`${login_user} is not in /etc/passwd and /etc/shadow after useradd.`);
  const evidence = { uid, shell: SHELL, password: "none" };
  return cleaningStep("account", login_user, "ok", was ? "The account was there." : "The account was made.", evidence);
}

/** A tenant's account gets no subordinate ids, because a later account could get the same ids and with them the tenant's files. */
const useraddArguments = ({ allocation_id, login_user, uid, home }: AllocationRecord): string[] => [
  ...["--uid", String(uid), "--gid", String(uid), "--home-dir", home, "--no-create-home", "--no-log-init"],
  ...["--shell", SHELL, "--comment", commentOf(allocation_id), "--password", NO_PASSWORD],
  ...["--key", "SUB_UID_COUNT=0", "--key", "SUB_GID_COUNT=0", login_user],
];

async function ensureHome(system: System, { home, uid }: AllocationRecord): Promise<Step> {
  const present = await system.entry(home);
  if (present === null) await system.makeHome(home, uid, uid);
  else if (present.kind !== "folder" || present.uid !== uid)
    throw new Error(`${home} is there and belongs to uid ${present.uid}. Remove it, or choose another login name.`);
  return cleaningStep("home", home, "ok", present === null ? "The home was made." : "The home was there.");
}

async function writeKeys(system: System, { home, uid }: AllocationRecord, input: Input): Promise<Step> {
  const text = `${input.ssh_keys.join("\n")}\n`;
  await system.writeOwned({ home, folder: ".ssh", name: "authorized_keys", text, uid, gid: uid });
  const count = input.ssh_keys.length;
  return cleaningStep("keys", `${home}/.ssh/authorized_keys`, "ok", `The file has ${count} keys.`, { keys: count });
}

/** Sets the sudo rights of the tenant's account. A sudoers file gets its final name, and takes effect, only after `visudo` has checked it. */
async function setSudo(system: System, record: AllocationRecord, root: boolean): Promise<Step> {
  const file = sudoersFile(record.allocation_id);
  if (!root) {
    const had = (await system.entry(file)) !== null;
    await system.remove(file);
    const message = had ? "The sudo rights were removed." : "The account gets no sudo rights.";
    return cleaningStep("sudo", file, "skipped", message);
  }
  const checked = uncheckedSudoersFile(record.allocation_id);
  await system.write(checked, sudoersText(record.login_user), 0o440);
  try {
    await tool(system, "visudo", ["--check", "--strict", "--file", checked]);
    await system.rename(checked, file);
  } finally {
    await system.remove(checked);
  }
  return cleaningStep("sudo", file, "ok", "The account has all rights by sudo.", { mode: "0440" });
}

async function tool(system: System, name: string, args: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await system.run(name, args, TOOL_TIMEOUT_MS);
  if (exitCode !== 0) throw new Error(`${name} ended with status ${exitCode}: ${stderr.slice(-500)}`);
}
