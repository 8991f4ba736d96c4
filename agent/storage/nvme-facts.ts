import type { SanitizeStatus, Technique, TechniqueChoice } from "./purge-technique.ts";

export const IDENTIFY_BYTES = 4096;
export const SANITIZE_LOG_BYTES = 512;

/** What an NVMe controller tells about itself in the data structure Identify Controller. */
export interface NvmeIdentity {
  readonly serial: string;
  readonly model: string;
  readonly firmware: string;
  readonly sanitizes: { readonly block: boolean; readonly crypto: boolean; readonly overwrite: boolean };
  readonly formats: boolean;
  /** Whether a format can exchange the disk's key. */
  readonly formatsByCrypto: boolean;
  /** Whether the controller can create and detach namespaces, so that a namespace may be hidden from the host. */
  readonly managesNamespaces: boolean;
}

const text = (bytes: Buffer, from: number, to: number): string => bytes.toString("latin1", from, to).trim();

/**
 * Parses the bytes of Identify Controller (NVM Express Base Specification). The agent reads bytes, because the names in the JSON of nvme-cli differ
 * between its versions. Returns null if `bytes` is no such data structure.
 */
export function parseIdentify(bytes: Buffer): NvmeIdentity | null {
  if (bytes.length !== IDENTIFY_BYTES) return null;
  const [oacs, sanicap, fna] = [bytes.readUInt16LE(256), bytes.readUInt32LE(328), bytes.readUInt8(524)];
  return {
    serial: text(bytes, 4, 24),
    model: text(bytes, 24, 64),
    firmware: text(bytes, 64, 72),
    sanitizes: { crypto: (sanicap & 1) !== 0, block: (sanicap & 2) !== 0, overwrite: (sanicap & 4) !== 0 },
    formats: (oacs & 2) !== 0,
    formatsByCrypto: (fna & 4) !== 0,
    managesNamespaces: (oacs & 8) !== 0,
  };
}

/** The numbers of sanitize actions in the command and in the log. */
const ACTIONS = {
  2: "nvme_sanitize_block",
  3: "nvme_sanitize_overwrite",
  4: "nvme_sanitize_crypto",
} as const satisfies Record<number, Technique>;
const STATES = ["never", "done", "running", "failed", "done"] as const;
/** The estimate that says that the disk does not tell how long a sanitize takes. */
const NO_ESTIMATE = 0xffff_ffff;

/** Parses the bytes of the log page Sanitize Status. Returns null if `bytes` is no such log, or has a state that the agent does not know. */
export function parseSanitizeLog(bytes: Buffer): SanitizeStatus | null {
  if (bytes.length !== SANITIZE_LOG_BYTES) return null;
  const [progress, status, command] = [bytes.readUInt16LE(0), bytes.readUInt16LE(2), bytes.readUInt32LE(4)];
  const state = STATES[status & 7];
  if (state === undefined) return null;
  const estimate = (at: number): number => (bytes.readUInt32LE(at) === NO_ESTIMATE ? 0 : bytes.readUInt32LE(at));
  const action = command & 7;
  return {
    state,
    technique: action === 2 || action === 3 || action === 4 ? ACTIONS[action] : null,
    namesTechnique: true,
    share: state === "running" ? progress / 65_536 : state === "done" ? 1 : 0,
    raw: `SSTAT 0x${status.toString(16)}, SPROG ${progress}, SCDW10 0x${command.toString(16)}`,
    estimates: {
      nvme_sanitize_overwrite: estimate(8),
      nvme_sanitize_block: estimate(12),
      nvme_sanitize_crypto: estimate(16),
    },
  };
}

export interface NvmeFacts {
  readonly identity: NvmeIdentity;
  /** The sanitize status, or null if the controller has no such log. */
  readonly status: SanitizeStatus | null;
  /** How many namespaces the controller has, also those that are hidden from the host, or null if the controller does not tell. */
  readonly namespaces: number | null;
}

/**
 * Chooses the technique by which the agent purges an NVMe disk. An erase of blocks comes first, because a later read can show its effect on every
 * block. A sanitize reaches all namespaces and the spare area, and a format only the one namespace of the disk.
 */
export function chooseForNvme({ identity, status, namespaces }: NvmeFacts): TechniqueChoice {
  const { sanitizes, formats, formatsByCrypto, managesNamespaces } = identity;
  const refuse = (reason: Extract<TechniqueChoice, { ok: false }>["reason"], detail: string): TechniqueChoice => ({
    ok: false,
    reason,
    detail,
  });
  if (status?.state === "running") return refuse("sanitize_running", `A sanitize already runs (${status.raw}).`);
  const canSanitize = sanitizes.block || sanitizes.crypto || sanitizes.overwrite;
  if (canSanitize && status === null)
    return refuse("facts_unreadable", "The disk can sanitize itself, but its sanitize log cannot be read.");
  if (sanitizes.block) return { ok: true, technique: "nvme_sanitize_block" };
  if (sanitizes.crypto) return { ok: true, technique: "nvme_sanitize_crypto" };
  if (sanitizes.overwrite) return { ok: true, technique: "nvme_sanitize_overwrite" };
  if (!formats) return refuse("no_purge_command", "The disk has neither a sanitize nor a format command.");
  if (managesNamespaces && namespaces === null)
    return refuse("facts_unreadable", "The disk does not tell how many namespaces it has.");
  if (managesNamespaces && namespaces !== 1)
    return refuse("hidden_namespaces", `The disk has ${namespaces} namespaces, and a format would reach only one.`);
  return { ok: true, technique: formatsByCrypto ? "nvme_format_crypto" : "nvme_format_erase" };
}
