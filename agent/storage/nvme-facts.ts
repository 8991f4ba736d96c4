import type { PurgeRefusal, SanitizeStatus, Technique, TechniqueChoice } from "./purge-technique.ts";

export const IDENTIFY_BYTES = 4096;
export const SANITIZE_LOG_BYTES = 512;

/** An NVMe controller describes itself in the data structure Identify Controller. */
export interface NvmeIdentity {
  readonly serial: string;
  readonly model: string;
  readonly firmware: string;
  readonly sanitizes: { readonly block: boolean; readonly crypto: boolean; readonly overwrite: boolean };
  readonly formats: boolean;
  /** True if a format of the NVMe disk can exchange the disk's encryption key. */
  readonly formatsByCrypto: boolean;
  /** True if the NVMe controller can create and detach namespaces, so that the host may not see all of them. */
  readonly managesNamespaces: boolean;
  /** True if the NVMe disk may have further controllers: a second port, or virtual functions. */
  readonly sharesDisk: boolean;
  /** The capacity of the whole NVMe disk in bytes; null if the controller does not tell it. */
  readonly bytes: number | null;
  /** How many bytes of the NVMe disk belong to no namespace. */
  readonly bytesOutside: number;
}

const text = (bytes: Buffer, from: number, to: number): string => bytes.toString("latin1", from, to).trim();

/** A JavaScript number has enough bits for the capacity of every disk, which Identify stores in 16 bytes. */
const longAt = (bytes: Buffer, at: number): number =>
  Number(bytes.readBigUInt64LE(at) + (bytes.readBigUInt64LE(at + 8) << 64n));

/**
 * Returns null for bytes that are no Identify Controller (NVM Express Base Specification). The agent reads the raw bytes of Identify Controller,
 * because the names in nvme-cli's JSON differ between the versions of nvme-cli.
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
    sharesDisk: (bytes.readUInt8(76) & 0b111) !== 0,
    bytes: longAt(bytes, 280) || null,
    bytesOutside: longAt(bytes, 296),
  };
}

/** The present format of an NVMe namespace, as the arguments of `nvme format` that keep this format. */
export interface NamespaceFormat {
  readonly lbaf: number;
  readonly pi: number;
  readonly pil: number;
  readonly ms: number;
}

/** Returns null for bytes that are no Identify Namespace, or for a namespace without a size. */
export function parseNamespace(bytes: Buffer): NamespaceFormat | null {
  if (bytes.length !== IDENTIFY_BYTES || bytes.readBigUInt64LE(0) === 0n) return null;
  const [flbas, dps] = [bytes.readUInt8(26), bytes.readUInt8(29)];
  return { lbaf: (flbas & 0xf) | ((flbas & 0x60) >> 1), pi: dps & 7, pil: (dps >> 3) & 1, ms: (flbas >> 4) & 1 };
}

/**
 * An NVMe Controller List consists of the number of its entries and the number of each controller. Returns null for bytes that are no NVMe Controller
 * List.
 */
export function parseControllers(bytes: Buffer): number[] | null {
  if (bytes.length !== IDENTIFY_BYTES) return null;
  const count = bytes.readUInt16LE(0);
  if (count < 1 || count > IDENTIFY_BYTES / 2 - 1) return null;
  return Array.from({ length: count }, (_, index) => bytes.readUInt16LE(2 + 2 * index));
}

/**
 * The NVMe sanitize commands that the agent sends, by their numbers in the disk's log. The agent's sanitize command for an overwrite asks for one
 * pass over the disk (OWPASS 1).
 */
const COMMANDS: Readonly<Record<number, Technique>> = {
  2: "nvme_sanitize_block",
  19: "nvme_sanitize_overwrite",
  4: "nvme_sanitize_crypto",
};
const STATES = ["never", "done", "running", "failed", "done"] as const;
/** The bit of an NVMe disk's sanitize status that the first write after a sanitize clears. */
const GLOBAL_DATA_ERASED = 0x100;
/** The number that an NVMe disk reports if it cannot estimate how long a sanitize takes. */
const NO_ESTIMATE = 0xffff_ffff;

/** Returns null for bytes that are no NVMe log page Sanitize Status, or for a state that the agent does not know. */
export function parseSanitizeLog(bytes: Buffer): SanitizeStatus | null {
  if (bytes.length !== SANITIZE_LOG_BYTES) return null;
  const [progress, status, command] = [bytes.readUInt16LE(0), bytes.readUInt16LE(2), bytes.readUInt32LE(4)];
  const state = STATES[status & 7];
  if (state === undefined) return null;
  const estimate = (at: number): number => (bytes.readUInt32LE(at) === NO_ESTIMATE ? 0 : bytes.readUInt32LE(at));
  return {
    state,
    technique: COMMANDS[command] ?? null,
    namesTechnique: true,
    isWritten: (status & GLOBAL_DATA_ERASED) === 0,
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
  /** The status of the NVMe disk's sanitize; null if the controller has no log about it. */
  readonly status: SanitizeStatus | null;
  /** The numbers of all namespaces of the NVMe disk, even of hidden ones; null if the controller does not tell them. */
  readonly namespaces: readonly number[] | null;
  /** The number of the NVMe namespace whose block device the order names. */
  readonly namespaceId: number | null;
  /** The format of the NVMe namespace that the order names; null if the controller does not tell it. */
  readonly format: NamespaceFormat | null;
  /** The numbers of the NVMe disk's controllers; null if the controller that the agent asks does not tell them. */
  readonly controllers: readonly number[] | null;
  /** The numbers of those controllers of the NVMe disk that this host has. */
  readonly ownControllers: readonly number[];
}

/**
 * The agent prefers an erase of an NVMe disk's blocks, because a later read can show its effect on every block. A sanitize reaches all namespaces and
 * the spare area of an NVMe disk, but a format reaches only one namespace.
 */
export function chooseForNvme(facts: NvmeFacts): TechniqueChoice {
  const { identity, status, controllers, ownControllers } = facts;
  const { sanitizes, formats } = identity;
  const refuse = (reason: PurgeRefusal, detail: string): TechniqueChoice => ({
    ok: false,
    reason,
    detail,
  });
  if (status?.state === "running") return refuse("sanitize_running", `A sanitize already runs (${status.raw}).`);
  const canSanitize = sanitizes.block || sanitizes.crypto || sanitizes.overwrite;
  if (canSanitize && status === null)
    return refuse("facts_unreadable", "The disk can sanitize itself, but its sanitize log cannot be read.");
  if (!canSanitize && !formats)
    return refuse("no_purge_command", "The disk has neither a sanitize nor a format command.");
  if (identity.sharesDisk && controllers === null)
    return refuse("facts_unreadable", "The disk may have several controllers, and does not tell which.");
  const foreign = (controllers ?? []).filter((one) => !ownControllers.includes(one));
  if (foreign.length > 0)
    return refuse(
      "foreign_controllers",
      `Others may use the disk by its controllers ${foreign.slice(0, 5).join(", ")}.`,
    );
  if (sanitizes.block) return { ok: true, technique: "nvme_sanitize_block" };
  if (sanitizes.crypto) return { ok: true, technique: "nvme_sanitize_crypto" };
  if (sanitizes.overwrite) return { ok: true, technique: "nvme_sanitize_overwrite" };
  return chooseFormat(facts, refuse);
}

/**
 * On some disks (FNA bits 0 and 1), a format of an NVMe namespace reaches all namespaces. The agent formats an NVMe namespace only if it is the
 * disk's only namespace and has the whole disk.
 */
function chooseFormat(
  { identity, namespaces, namespaceId, format }: NvmeFacts,
  refuse: (reason: PurgeRefusal, detail: string) => TechniqueChoice,
): TechniqueChoice {
  if (namespaces === null || namespaceId === null)
    return refuse("facts_unreadable", "The disk does not tell which namespaces it has.");
  if (namespaces.length !== 1 || namespaces[0] !== namespaceId)
    return refuse("hidden_namespaces", `The disk has the namespaces ${namespaces.slice(0, 5).join(", ")}.`);
  if (identity.bytesOutside > 0)
    return refuse("hidden_capacity", `${identity.bytesOutside} bytes of the disk belong to no namespace.`);
  if (format === null) return refuse("facts_unreadable", "The disk does not tell the format of its namespace.");
  return { ok: true, technique: identity.formatsByCrypto ? "nvme_format_crypto" : "nvme_format_erase" };
}
