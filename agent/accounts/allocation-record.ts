import { z } from "zod";
import { FIRST_TENANT_UID as FIRST_UID, LAST_TENANT_UID as LAST_UID } from "../../shared/tenant-uids.ts";
import type { System } from "../system/system.ts";
import { parseAccounts, parseGroups } from "./account-files.ts";

const FOLDER = "/var/lib/muster/agent/allocations";
/**
 * The file in which the agent stores the next uid for a tenant's account. No two tenants of a host get one uid, so no tenant owns files of an earlier
 * tenant. If a new image of the host has deleted the file with the next uid, the hub's order names the lowest uid that the agent may give to an
 * account.
 */
const NEXT_UID = "/var/lib/muster/agent/next-uid.json";
const TOOL_TIMEOUT_MS = 15_000;

/**
 * The agent writes its record of a tenant's account before it makes the account, so that a restarted agent knows the account as Muster's. The agent's
 * record outlives the tenant's account, so that an order that arrives late does not make the account a second time.
 */
const AllocationRecord = z.strictObject({
  allocation_id: z.uuid(),
  login_user: z.string(),
  uid: z.int().min(FIRST_UID).max(LAST_UID),
  home: z.string(),
  state: z.enum(["granting", "granted", "revoking", "revoked"]),
  /**
   * How the tenant's account could get the rights of root when its revocation began; the agent records these ways because the revocation removes
   * them.
   */
  root_by: z.array(z.string()).optional(),
});
export type AllocationRecord = z.output<typeof AllocationRecord>;
const NextUid = z.strictObject({
  next_uid: z
    .int()
    .min(FIRST_UID)
    .max(LAST_UID + 1),
});

const fileOf = (allocationId: string): string => `${FOLDER}/${allocationId}.json`;

/**
 * Reads the record of an allocation's account, or returns null if the host has no record. `readRecord` throws if the account's record is damaged,
 * because null would mean that the account is not Muster's.
 */
export async function readRecord(system: System, allocationId: string): Promise<AllocationRecord | null> {
  return readJson(system, fileOf(allocationId), AllocationRecord);
}

async function readJson<T>(system: System, file: string, schema: z.ZodType<T>): Promise<T | null> {
  const text = await system.read(file);
  if (text === null) return null;
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw new Error(`${file} is damaged. Repair the file, or reimage the host.`, { cause: error });
  }
}

export async function writeRecord(system: System, record: AllocationRecord): Promise<void> {
  await system.write(fileOf(record.allocation_id), `${JSON.stringify(record)}\n`, 0o600);
}

/**
 * Returns a uid that no account or group of the host has, and that no earlier allocation had. The uid for a new account is not below `lowest`, which
 * the hub computes from the accounts of earlier operating systems on the machine. The agent stores the next uid on disk before it uses a uid, so that
 * a killed agent never gives a uid twice.
 */
export async function takeUid(system: System, lowest = FIRST_UID): Promise<number> {
  const start = Math.max(lowest, (await readJson(system, NEXT_UID, NextUid))?.next_uid ?? FIRST_UID);
  const records = await Promise.all(
    (await system.list(FOLDER))
      .filter((name) => name.endsWith(".json"))
      .map((name) => readRecord(system, name.slice(0, -".json".length))),
  );
  const used = new Set([
    ...parseAccounts(await system.read("/etc/passwd")).map(({ uid }) => uid),
    ...parseGroups(await system.read("/etc/group")).map(({ gid }) => gid),
    ...records.map((record) => record?.uid ?? 0),
  ]);
  for (let uid = start; uid <= LAST_UID; uid += 1) {
    if (
      used.has(uid) ||
      (await isNamed(system, "passwd", String(uid))) ||
      (await isNamed(system, "group", String(uid)))
    )
      continue;
    await system.write(NEXT_UID, `${JSON.stringify({ next_uid: uid + 1 })}\n`, 0o600);
    return uid;
  }
  throw new Error(`All uids up to ${LAST_UID} were given to tenants of this host. Allocate another host.`);
}

export async function isNamed(system: System, database: "passwd" | "group", key: string): Promise<boolean> {
  const NOT_FOUND = 2;
  const { exitCode, stderr } = await system.run("getent", [database, key], TOOL_TIMEOUT_MS);
  if (exitCode === 0) return true;
  if (exitCode === NOT_FOUND) return false;
  throw new Error(`getent ${database} ${key} ended with status ${exitCode}: ${stderr.slice(-300)}`);
}
