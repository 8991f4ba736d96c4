import type { SanitizeStatus, TechniqueChoice } from "./purge-technique.ts";

/**
 * The password that the agent sets before an erase of the security feature set. The disk needs a password, and the end of the erase removes it. The
 * password is fixed and documented, and no secret: `hdparm` takes it as an argument that every user of the host can read. A random password that was
 * lost in a power cut would leave a disk that nobody can use.
 */
export const ERASE_PASSWORD = "MusterErase";

/** What a SATA disk tells about itself by IDENTIFY DEVICE. */
export interface AtaIdentity {
  readonly serial: string;
  readonly model: string;
  readonly firmware: string;
  readonly sanitizes: { readonly block: boolean; readonly crypto: boolean; readonly overwrite: boolean };
  /** Whether a password locks the SATA disk, or somebody has set a password. */
  readonly isLocked: boolean;
  readonly security: AtaSecurity;
}

/** What a SATA disk tells of its security feature set (words 89, 90 and 128). */
export interface AtaSecurity {
  readonly isSupported: boolean;
  /** Whether the disk refuses every command of the feature set until its next power cycle. Most firmware freezes each disk at boot. */
  readonly isFrozen: boolean;
  readonly hasEnhancedErase: boolean;
  /** How long the disk expects an erase and an enhanced erase to take, in seconds. 0 means that the disk does not tell. */
  readonly eraseSeconds: number;
  readonly enhancedSeconds: number;
}

/** An erase time of IDENTIFY DEVICE, in units of two minutes. Bit 15 says that the time has 15 bits and not 8. */
const secondsOf = (word: number): number => ((word & 0x8000) === 0 ? word & 0xff : word & 0x7fff) * 120;

const WORDS = 256;

/**
 * Parses what `hdparm --Istdout` prints: the 256 words of IDENTIFY DEVICE as hexadecimal numbers. `parseAtaIdentity` returns null for a text that is
 * not the output of `hdparm --Istdout`.
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
      // Bit 4 says that too many passwords were wrong, which also ends with a power cycle.
      isFrozen: (at(128) & 0b11000) !== 0,
      hasEnhancedErase: (at(128) & 0b100000) !== 0,
      eraseSeconds: secondsOf(at(89)),
      enhancedSeconds: secondsOf(at(90)),
    },
  };
}

const STATES = { SD0: "idle", SD1: "frozen", SD2: "running", SD3: "failed" } as const;
const isState = (name: string): name is keyof typeof STATES => Object.hasOwn(STATES, name);

/** Parses the output of `hdparm --sanitize-status`. `parseAtaStatus` returns null for an output without a known state of the sanitize. */
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

/** Chooses an erase of the security feature set for a disk without sanitize. */
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

/** Chooses the technique by which the agent purges a SATA disk. */
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
