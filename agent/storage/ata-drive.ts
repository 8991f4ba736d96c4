import type { Attempt, AttemptTool } from "../system/attempt.ts";
import { type AtaIdentity, chooseForAta, parseAtaIdentity, parseAtaStatus } from "./ata-facts.ts";
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

/**
 * The password that the agent sets before an erase of the security feature set. The disk needs a password, and the end of the erase removes it. The
 * password is fixed and documented, and no secret: `hdparm` takes it as an argument that every user of the host can read. A random password that was
 * lost in a power cut would leave a disk that nobody can use.
 */
export const ERASE_PASSWORD = "MusterErase";
const USER = ["--user-master", "u"];
const LEAST_ERASE_SECONDS = 2 * 3_600;

/** The commands of a SATA disk. */
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
    // The disk refuses the first command unless it is locked. `identify` tells whether the password is gone.
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
      const known = sanitizes.block || sanitizes.crypto || sanitizes.overwrite ? await status() : null;
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
      if (setsPassword(technique)) return startSecurityErase(technique, path, { hdparm, identify, clearPassword });
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

/** Sets the password, erases the disk and waits for the end. Only a disk that has no password any more has ended its erase. */
async function startSecurityErase(technique: Technique, path: string, tools: SecurityTools): Promise<CommandEnd> {
  const { hdparm, identify, clearPassword } = tools;
  const set = judgeCommand("ata", "hdparm", await hdparm([...USER, "--security-set-pass", ERASE_PASSWORD, path]));
  const before = await identify();
  if (isRefusal(before)) return { kind: "unknown", detail: before.detail };
  if (!before.isLocked)
    return { kind: "refused", detail: set.kind === "accepted" ? "The disk takes no password." : set.detail };
  const isEnhanced = technique === "ata_security_enhanced";
  const { enhancedSeconds, eraseSeconds } = before.security;
  const seconds = Math.max(LEAST_ERASE_SECONDS, 3 * (isEnhanced ? enhancedSeconds : eraseSeconds));
  const command = isEnhanced ? "--security-erase-enhanced" : "--security-erase";
  const args = [...USER, command, ERASE_PASSWORD, path];
  const end = judgeCommand("ata", "hdparm", await hdparm(args, Math.min(seconds, WAIT_WITHIN_S) * 1000));
  const after = await identify();
  if (isRefusal(after)) return { kind: "unknown", detail: after.detail };
  if (!after.isLocked && end.kind === "accepted") return end;
  if (after.isLocked) await clearPassword();
  return {
    kind: end.kind === "refused" ? "refused" : "unknown",
    detail: end.kind === "accepted" ? "The disk kept its password after the erase." : end.detail,
  };
}
