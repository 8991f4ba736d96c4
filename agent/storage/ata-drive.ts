import type { Attempt, AttemptTool } from "../system/attempt.ts";
import { type AtaIdentity, chooseForAta, ERASE_PASSWORD, parseAtaIdentity, parseAtaStatus } from "./ata-facts.ts";
import { type CommandEnd, judgeCommand } from "./command-end.ts";
import type { BlockDevice } from "./disk-rules.ts";
import {
  ASK_TIMEOUT_MS,
  type Drive,
  type DriveRefusal,
  endedOf,
  isRefusal,
  otherDisk,
  SANITIZE_ARGUMENTS,
  toldBy,
  unreadable,
  versionOf,
} from "./drive.ts";
import { type SanitizeStatus, setsPassword, type Technique, WAIT_WITHIN_S } from "./purge-technique.ts";

const USER = ["--user-master", "u"];
const LEAST_ERASE_SECONDS = 2 * 3_600;
/**
 * The assumed write speed of a slow disk, in bytes per second. A disk that does not say how long an erase takes may take one hour more than a slow
 * disk needs to write all blocks.
 */
const SLOW_BYTES_PER_S = 30_000_000;

/**
 * How many seconds the overwrite of a disk takes: the time that the disk tells for a security erase (word 89), which also writes every block, or the time
 * to write all blocks at the speed of a slow disk.
 */
export const overwriteSeconds = (toldSeconds: number, bytes: number): number =>
  toldSeconds > 0 ? toldSeconds : Math.ceil(bytes / SLOW_BYTES_PER_S);

/** The agent waits for an erase three times as long as the disk says, or as long as a slow disk of this size needs. */
export const eraseWithin = (toldSeconds: number, bytes: number): number =>
  Math.min(WAIT_WITHIN_S, Math.max(LEAST_ERASE_SECONDS, 3 * toldSeconds, Math.ceil(bytes / SLOW_BYTES_PER_S) + 3_600));

export function ataDrive(device: BlockDevice, attempt: AttemptTool): Drive {
  const path = `/dev/${device.name}`;
  const hdparm = (args: readonly string[], timeoutMs = ASK_TIMEOUT_MS): Promise<Attempt> =>
    attempt("hdparm", args, { timeoutMs });
  const status = async (): Promise<SanitizeStatus | null> => {
    const end = endedOf(await hdparm(["--sanitize-status", path]), "hdparm");
    return isRefusal(end) ? null : parseAtaStatus(`${end.stdout}\n${end.stderr}`);
  };
  const identify = async (): Promise<AtaIdentity | DriveRefusal> => {
    const end = endedOf(await hdparm(["--Istdout", path]), "hdparm");
    if (isRefusal(end)) return end;
    const identity = parseAtaIdentity(end.stdout);
    if (identity === null) return unreadable(`hdparm --Istdout: ${toldBy(end)}`);
    return identity.serial === device.serial ? identity : otherDisk(identity.serial, device.serial);
  };
  const clearPassword = async (): Promise<void> => {
    // A SATA disk that no password locks refuses the hdparm command `--security-unlock`. The function `identify` shows afterwards whether the SATA
    // disk still has a password.
    await hdparm([...USER, "--security-unlock", ERASE_PASSWORD, path]);
    await hdparm([...USER, "--security-disable", ERASE_PASSWORD, path]);
  };
  return {
    status,
    clearPassword,
    facts: async () => {
      const identity = await identify();
      if (isRefusal(identity)) return identity;
      const { sanitizes } = identity;
      const told = sanitizes.block || sanitizes.crypto || sanitizes.overwrite ? await status() : null;
      const ata_sanitize_overwrite = overwriteSeconds(identity.security.eraseSeconds, device.bytes);
      const known = told === null ? null : { ...told, estimates: { ata_sanitize_overwrite } };
      return {
        ok: true,
        model: identity.model,
        firmware: identity.firmware,
        tool: "hdparm",
        toolVersion: await versionOf("hdparm", ["-V"], attempt),
        status: known,
        bytes: device.bytes,
        choice: chooseForAta({ identity, status: known }),
      };
    },
    start: async (technique) => {
      if (setsPassword(technique)) return startSecurityErase(technique, device, { hdparm, identify, clearPassword });
      const command = SANITIZE_ARGUMENTS[technique];
      if (command === undefined) return { kind: "refused", detail: `A SATA disk has no technique ${technique}.` };
      return judgeCommand("ata", "hdparm", await hdparm(["--yes-i-know-what-i-am-doing", ...command, path]));
    },
  };
}

interface SecurityTools {
  hdparm(args: readonly string[], timeoutMs?: number): Promise<Attempt>;
  identify(): Promise<AtaIdentity | DriveRefusal>;
  clearPassword(): Promise<void>;
}

/**
 * The agent sets a password on the SATA disk, erases the disk and waits for the end of the erase. The erase of a SATA disk has ended only if the disk
 * no longer has a password.
 */
async function startSecurityErase(
  technique: Technique,
  device: BlockDevice,
  tools: SecurityTools,
): Promise<CommandEnd> {
  const { hdparm, identify, clearPassword } = tools;
  const path = `/dev/${device.name}`;
  const set = judgeCommand("ata", "hdparm", await hdparm([...USER, "--security-set-pass", ERASE_PASSWORD, path]));
  const before = await identify();
  if (isRefusal(before)) return { kind: "unknown", detail: before.detail };
  if (!before.isLocked)
    return { kind: "refused", detail: set.kind === "accepted" ? "The disk takes no password." : set.detail };
  const isEnhanced = technique === "ata_security_enhanced";
  const { enhancedSeconds, eraseSeconds } = before.security;
  const seconds = eraseWithin(isEnhanced ? enhancedSeconds : eraseSeconds, device.bytes);
  const command = isEnhanced ? "--security-erase-enhanced" : "--security-erase";
  const args = [...USER, command, ERASE_PASSWORD, path];
  const end = judgeCommand("ata", "hdparm", await hdparm(args, seconds * 1000));
  const after = await identify();
  if (isRefusal(after)) return { kind: "unknown", detail: after.detail };
  if (!after.isLocked && end.kind === "accepted") return end;
  if (after.isLocked) {
    await clearPassword();
    const last = await identify();
    // The agent records the result of the SATA disk's erase as unknown, so that a later task may remove the password from the disk.
    if (isRefusal(last) || last.isLocked)
      return {
        kind: "unknown",
        detail: `The disk may still have the password ${ERASE_PASSWORD}.`,
      };
  }
  return {
    kind: end.kind === "refused" ? "refused" : "unknown",
    detail: end.kind === "accepted" ? "The disk kept its password after the erase." : end.detail,
  };
}
