import { createHash } from "node:crypto";
import { LONGEST_NAME } from "../../../shared/residue/snapshot.ts";

/** How many characters of a long name `entryName` keeps in front of the digest of the whole name. */
const HEAD = LONGEST_NAME - 20;

/**
 * Returns the name of an entry of a residue snapshot. Tenants choose the names of files and processes, so `entryName` escapes characters that are not
 * printable ASCII. `entryName` cuts a long name and appends a digest of the whole name, so that two long names stay different.
 */
export function entryName(text: string): string {
  const escaped = text.replace(/[^\x20-\x7e]|\\/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
  if (escaped.length === 0) return "(empty)";
  if (escaped.length <= LONGEST_NAME) return escaped;
  return `${escaped.slice(0, HEAD)}#${createHash("sha256").update(escaped).digest("base64url").slice(0, 16)}`;
}

/** Matches the parts of names that services choose at random, so that they differ after each boot or start. */
const RANDOM_PARTS: readonly [RegExp, string][] = [
  [/systemd-private-[0-9a-f]{32}-(.+)-[A-Za-z0-9]{6}(?=\/|$)/g, "systemd-private-*-$1-*"],
  [/snap-private-tmp\/.*/g, "snap-private-tmp"],
  [/\b[0-9a-f]{64}\b/g, "*"],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, "*"],
  [/\bveth[0-9a-f]+\b/g, "veth*"],
];

/** Replaces the random parts of a name, so that the name is the same after each boot. */
export const withoutRandomParts = (name: string): string =>
  RANDOM_PARTS.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), name);
