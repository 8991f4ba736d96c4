import type { SanitizeStatus, TechniqueChoice } from "./purge-technique.ts";

/**
 * The fixed password that the agent sets on a SATA disk before it erases the disk by the ATA security feature set. A SATA disk needs a password
 * before an erase by its security feature set, and removes the password at the end of the erase. The password is no secret, but fixed and documented:
 * The tool `hdparm` takes the disk's password as an argument, which every user of the host can read. If the agent lost a random password in a power
 * cut, nobody could use the disk any more.
 */
export const ERASE_PASSWORD = "MusterErase";

export interface AtaIdentity {
  readonly serial: string;
  readonly model: string;
  readonly firmware: string;
  readonly sanitizes: { readonly block: boolean; readonly crypto: boolean; readonly overwrite: boolean };
  /** True if a password locks the SATA disk, or if somebody has set a password that does not lock it yet. */
  readonly isLocked: boolean;
  readonly security: AtaSecurity;
}

/** A SATA disk describes its security feature set in the words 89, 90 and 128 of IDENTIFY DEVICE. */
export interface AtaSecurity {
  readonly isSupported: boolean;
  /**
   * True if the SATA disk refuses every command of its security feature set until its next power cycle. The firmware of most hosts freezes the
   * security feature set of each SATA disk at boot.
   */
  readonly isFrozen: boolean;
  readonly hasEnhancedErase: boolean;
  /** The seconds that the SATA disk expects its erase and its enhanced erase to take; 0 if the disk does not say. */
  readonly eraseSeconds: number;
  readonly enhancedSeconds: number;
}

/**
 * In IDENTIFY DEVICE, a SATA disk gives the time of an erase in units of two minutes. If bit 15 of the word with the erase time in IDENTIFY DEVICE is
 * set, the time has 15 bits; otherwise it has 8 bits.
 */
const secondsOf = (word: number): number => ((word & 0x8000) === 0 ? word & 0xff : word & 0x7fff) * 120;

const WORDS = 256;

/**
 * The command `hdparm --Istdout` prints the 256 words of a SATA disk's IDENTIFY DEVICE as hexadecimal numbers. Returns null for a text that `hdparm
 * --Istdout` does not print.
 */
export function parseAtaIdentity(printed: string): AtaIdentity | null {
  const words = printed
    .split("\n")
    .filter((line) => /^\s*([0-9a-f]{4}\s+){7}[0-9a-f]{4}\s*$/i.test(line))
    .flatMap((line) => line.trim().split(/\s+/))
    .map((word) => Number.parseInt(word, 16));
  if (words.length !== WORDS) return null;
  const at = (index: number): number => words[index] ?? 0;
  const text = (from: number, to: number): string =>
    String.fromCharCode(...words.slice(from, to + 1).flatMap((word) => [word >> 8, word & 0xff])).trim();
  const sanitizes = (at(59) & 0x1000) !== 0;
  return {
    serial: text(10, 19),
    model: text(27, 46),
    firmware: text(23, 26),
    sanitizes: {
      crypto: sanitizes && (at(59) & 0x2000) !== 0,
      overwrite: sanitizes && (at(59) & 0x4000) !== 0,
      block: sanitizes && (at(59) & 0x8000) !== 0,
    },
    isLocked: (at(128) & 0b110) !== 0,
    security: {
      isSupported: (at(128) & 1) !== 0,
      // Bit 4 of word 128 of IDENTIFY DEVICE says that the SATA disk got too many wrong passwords, a state that also ends with a power cycle.
      isFrozen: (at(128) & 0b11000) !== 0,
      hasEnhancedErase: (at(128) & 0b100000) !== 0,
      eraseSeconds: secondsOf(at(89)),
      enhancedSeconds: secondsOf(at(90)),
    },
  };
}

const STATES = { SD0: "idle", SD1: "frozen", SD2: "running", SD3: "failed" } as const;
const isState = (name: string): name is keyof typeof STATES => Object.hasOwn(STATES, name);

/** Returns null if the output of `hdparm --sanitize-status` names no state of the sanitize that the agent knows. */
export function parseAtaStatus(printed: string): SanitizeStatus | null {
  const state = /State:\s+(SD\d)/.exec(printed)?.[1] ?? (/in SD3 /.test(printed) ? "SD3" : "");
  if (!isState(state)) return null;
  const isDone = /Last Sanitize Operation Completed Without Error/.test(printed);
  const progress = /Progress:\s+0x([0-9a-f]+)/i.exec(printed)?.[1];
  const named = STATES[state];
  return {
    state: named === "idle" ? (isDone ? "done" : "never") : named,
    technique: null,
    namesTechnique: false,
    isWritten: false,
    share: named === "running" ? Number.parseInt(progress ?? "0", 16) / 65_536 : isDone ? 1 : 0,
    raw: `${state}${isDone ? ", last sanitize without error" : ""}`,
    estimates: {},
  };
}

export interface AtaFacts {
  readonly identity: AtaIdentity;
  readonly status: SanitizeStatus | null;
}

/** For a SATA disk without the command sanitize, the agent erases by the ATA security feature set. */
function chooseSecurityErase({ isSupported, isFrozen, hasEnhancedErase }: AtaSecurity): TechniqueChoice {
  if (!isSupported)
    return {
      ok: false,
      reason: "no_purge_command",
      detail: "The disk has no command of the sanitize or the security feature set.",
    };
  if (isFrozen)
    return {
      ok: false,
      reason: "security_frozen",
      detail:
        "The firmware has frozen the disk's security commands. Turn the freeze lock off in the firmware's settings.",
    };
  return { ok: true, technique: hasEnhancedErase ? "ata_security_enhanced" : "ata_security_erase" };
}

export function chooseForAta({ identity, status }: AtaFacts): TechniqueChoice {
  const { sanitizes, isLocked } = identity;
  if (isLocked)
    return {
      ok: false,
      reason: "disk_locked",
      detail: identity.security.isFrozen
        ? `A password locks the disk, and its security commands are frozen. Power the host off and on, and remove the password (${ERASE_PASSWORD} after an erase of the agent).`
        : `A password locks the disk. Remove the password of the disk (${ERASE_PASSWORD} after an erase of the agent).`,
    };
  if (!sanitizes.block && !sanitizes.crypto && !sanitizes.overwrite) return chooseSecurityErase(identity.security);
  if (status === null)
    return { ok: false, reason: "facts_unreadable", detail: "The sanitize status of the disk cannot be read." };
  if (status.state === "running")
    return { ok: false, reason: "sanitize_running", detail: `A sanitize already runs (${status.raw}).` };
  if (status.state === "frozen")
    return {
      ok: false,
      reason: "sanitize_frozen",
      detail: "The disk refuses every sanitize until its next power cycle. Power the host off and on.",
    };
  if (sanitizes.block) return { ok: true, technique: "ata_sanitize_block" };
  return { ok: true, technique: sanitizes.crypto ? "ata_sanitize_crypto" : "ata_sanitize_overwrite" };
}
