import type { PurgeTitle } from "../../shared/purge-techniques.ts";
import { STORAGE_LIMITS } from "../../shared/storage-works.ts";

/**
 * The disk commands by which the agent purges a disk, each with its class of method (NIST SP 800-88 Rev. 2). After an erase of blocks or an
 * overwrite, all bytes of the disk are equal. After the exchange of a disk's encryption key, a read of the disk shows other bytes than before.
 */
export const TECHNIQUES = {
  nvme_sanitize_block: { title: "NVMe sanitize, block erase", method: "purge", expects: "uniform", hasLog: true },
  nvme_sanitize_crypto: { title: "NVMe sanitize, crypto erase", method: "purge", expects: "changed", hasLog: true },
  nvme_sanitize_overwrite: {
    title: "NVMe sanitize, overwrite with zeros",
    method: "purge",
    expects: "uniform",
    hasLog: true,
  },
  nvme_format_crypto: { title: "NVMe format, crypto erase", method: "clear", expects: "changed", hasLog: false },
  nvme_format_erase: { title: "NVMe format, user data erase", method: "clear", expects: "uniform", hasLog: false },
  ata_sanitize_block: { title: "ATA sanitize, block erase", method: "purge", expects: "uniform", hasLog: true },
  ata_sanitize_crypto: { title: "ATA sanitize, crypto scramble", method: "purge", expects: "changed", hasLog: true },
  ata_sanitize_overwrite: {
    title: "ATA sanitize, overwrite with zeros",
    method: "purge",
    expects: "uniform",
    hasLog: true,
  },
  // NIST SP 800-88 rates the enhanced erase of a SATA disk as a purge for hard disks only. Both kinds of the ATA security erase count as `clear`,
  // because NIST rates neither as a purge of every kind of disk.
  ata_security_enhanced: {
    title: "ATA security erase, enhanced",
    method: "clear",
    expects: "changed",
    hasLog: false,
  },
  ata_security_erase: { title: "ATA security erase", method: "clear", expects: "uniform", hasLog: false },
} as const satisfies Record<
  string,
  { title: PurgeTitle; method: "clear" | "purge"; expects: "uniform" | "changed"; hasLog: boolean }
>;
export type Technique = keyof typeof TECHNIQUES;
/** True if the technique sets a password on the disk before the erase, which the disk removes at the end. */
export const setsPassword = (technique: Technique): boolean => technique.startsWith("ata_security_");
export const TECHNIQUE_NAMES = Object.keys(TECHNIQUES) as [Technique, ...Technique[]];

export interface SanitizeStatus {
  readonly state: "never" | "running" | "done" | "failed" | "frozen";
  /**
   * The technique that the disk names for its last sanitize; null if the disk names none that the agent uses. ATA disks do not say which technique
   * their last sanitize used.
   */
  readonly technique: Technique | null;
  /** True if the disk says which technique its last sanitize used. */
  readonly namesTechnique: boolean;
  /** True if the disk says that somebody wrote to it after its last sanitize, which ATA disks do not say. */
  readonly isWritten: boolean;
  /** The share of a running sanitize that the disk has done, from 0 to 1. */
  readonly share: number;
  /** The status of the sanitize as the disk itself states it, in words or as a number, for the evidence of the cleaning step. */
  readonly raw: string;
  /** For each purge technique, the seconds that it takes by the disk's own estimate; a technique without an estimate is missing. */
  readonly estimates: Readonly<Partial<Record<Technique, number>>>;
}

/** The closed set of reasons for which the agent cannot purge a disk that it may erase. */
export type PurgeRefusal =
  | "tool_missing"
  | "tool_failed"
  | "facts_unreadable"
  | "other_disk"
  | "no_purge_command"
  | "hidden_namespaces"
  | "hidden_capacity"
  | "foreign_controllers"
  | "sanitize_running"
  | "sanitize_frozen"
  | "security_frozen"
  | "disk_locked";

export type TechniqueChoice =
  | { readonly ok: true; readonly technique: Technique }
  | { readonly ok: false; readonly reason: PurgeRefusal; readonly detail: string };

/** A purge that the agent cannot start ends as `unsupported` if the disk lacks the command or the host lacks the tool, and otherwise as `failed`. */
export const outcomeOf = (reason: PurgeRefusal): "unsupported" | "failed" =>
  reason === "no_purge_command" || reason === "tool_missing" ? "unsupported" : "failed";

const LEAST_SECONDS = 2 * 3_600;
const MOST_SECONDS = 23 * 3_600;
/**
 * The agent stops waiting for a purge one hour before the deadline of the purge's worker process, so that the cleaning step can still report the
 * reason.
 */
export const WAIT_WITHIN_S = STORAGE_LIMITS.disk.seconds - 3_600;

/**
 * The agent waits for a purge without progress three times as long as the disk's own estimate, but at least two hours. Some disks report no progress
 * of a purge, or the same value until the end of the purge. The overwrite of a SATA disk writes every block, and takes up to two days. If a SATA disk
 * does not tell how long its overwrite takes, the agent waits for the longest time that it waits for any purge (`WAIT_WITHIN_S`).
 */
export function patienceOf(technique: Technique, status: SanitizeStatus | null): number {
  const estimate = status?.estimates[technique];
  const isOverwrite = technique === "ata_sanitize_overwrite";
  if (estimate === undefined) return isOverwrite ? WAIT_WITHIN_S : LEAST_SECONDS;
  return Math.min(isOverwrite ? WAIT_WITHIN_S : MOST_SECONDS, Math.max(LEAST_SECONDS, 3 * estimate));
}

/** The worker process remembers the progress of a purge. The times of a purge's progress are milliseconds of a clock that never goes back. */
export interface Advance {
  readonly first: { readonly at: number; readonly share: number };
  /** The highest share of the purge that the disk reported, and the time when the worker process first read it. */
  readonly last: { readonly at: number; readonly share: number };
}
export const advanceFrom = (at: number, share = 0): Advance => ({ first: { at, share }, last: { at, share } });

/**
 * The worker process estimates the rest of a purge from the first share that it reads itself, because an earlier worker process may have waited for
 * this purge before.
 */
export const advanced = (seen: Advance | null, at: number, share: number): Advance =>
  seen === null ? advanceFrom(at, share) : { ...seen, last: share > seen.last.share ? { at, share } : seen.last };

/** Returns how many seconds a purge still needs at its present speed, or null while the worker process does not know the speed. */
export function secondsLeft({ first, last }: Advance): number | null {
  const done = last.share - first.share;
  return done < 0.005 ? null : Math.round((((1 - last.share) / done) * (last.at - first.at)) / 1000);
}

/** For an operator, the progress of a purge is a text with the time at which the purge should end. */
export function progressText(name: string, seen: Advance, now: Date): string {
  const left = secondsLeft(seen);
  const end = left === null ? null : new Date(now.getTime() + left * 1000).toISOString().slice(0, 16).replace("T", " ");
  return `purge ${name} ${Math.floor(seen.last.share * 100)} %${end === null ? "" : `, ends about ${end} UTC`}`;
}

export type Progress =
  | { readonly kind: "running"; readonly share: number }
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly reason: PurgeFailure; readonly detail: string };

/** The closed set of reasons for which a started purge ended badly. */
export type PurgeFailure =
  | "not_begun"
  | "start_refused"
  | "sanitize_failed"
  | "other_technique"
  | "written_since"
  | "log_unreadable"
  | "no_progress"
  | "deadline_passed"
  | "end_unknown"
  | "in_use"
  | "marker_failed"
  | "sample_differs"
  | "sample_unreadable";

/** The disk's sanitize status shows whether the agent's purge still runs, is done or has failed. */
export function judgeProgress(technique: Technique, status: SanitizeStatus): Progress {
  const failed = (reason: PurgeFailure, detail: string): Progress => ({ kind: "failed", reason, detail });
  if (status.namesTechnique && status.state !== "never" && status.technique !== technique)
    return failed("other_technique", `The disk reports another sanitize than the agent started (${status.raw}).`);
  switch (status.state) {
    case "running":
      return { kind: "running", share: status.share };
    case "done":
      if (status.isWritten)
        return failed("written_since", `Something wrote to the disk after its sanitize (${status.raw}).`);
      return { kind: "done" };
    case "never":
      return failed("not_begun", `The disk reports that no sanitize ever began (${status.raw}).`);
    case "frozen":
      return failed("not_begun", `The disk refuses every sanitize until its next power cycle (${status.raw}).`);
    case "failed":
      return failed("sanitize_failed", `The disk reports that the sanitize failed (${status.raw}). Replace the disk.`);
  }
}
