import { createHash } from "node:crypto";
import { LONGEST_NAME } from "../../../shared/residue/snapshot.ts";

/** How many characters of a long name stand before the digest of the whole name. */
const HEAD = LONGEST_NAME - 20;

/**
 * Tenants choose names of files and processes, so `entryName` escapes all but printable ASCII characters. `entryName` cuts a long name and adds a
 * digest of the whole name, so that two long names stay different.
 */
export function entryName(text: string): string {
  const escaped = text.replace(/[^\x20-\x7e]|\\/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
  if (escaped.length === 0) return "(empty)";
  if (escaped.length <= LONGEST_NAME) return escaped;
  return `${escaped.slice(0, HEAD)}#${createHash("sha256").update(escaped).digest("base64url").slice(0, 16)}`;
}

/** Matches the random parts of names, which differ after each boot or start of a service. */
const RANDOM_PARTS: readonly [RegExp, string][] = [
  [/systemd-private-[0-9a-f]{32}-(.+)-[A-Za-z0-9]{6}(?=\/|$)/g, "systemd-private-*-$1-*"],
  [/snap-private-tmp\/.*/g, "snap-private-tmp"],
  [/\b[0-9a-f]{64}\b/g, "*"],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, "*"],
  [/\bveth[0-9a-f]+\b/g, "veth*"],
];

/** Replaces the random parts of a name, so that the name stays equal over boots. */
export const withoutRandomParts = (name: string): string =>
  RANDOM_PARTS.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), name);
