import { RESIDUE_ITEM_NAMES, type ResidueItem, type ResidueRule, ruleOf } from "./items.ts";
import { isDiskMount } from "./mount-names.ts";
import {
  kernelKeysOf,
  type ResidueEntry,
  type ResidueReading,
  type ResidueSnapshot,
  type ResidueTenant,
} from "./snapshot.ts";

/** The largest number of findings that the judgement of one residue item (a kind of trace of a tenant, for example mounts) names. */
export const MOST_FOUND = 20;

/**
 * The reasons why an entry of a residue item, for example one account or one mount, is a finding. An entry is `added`, `changed` or `removed` in
 * comparison with the node's baseline, the snapshot from before the first tenant. An entry with the reason `forbidden` may never exist on a clean
 * host; one with the reason `tenant` is the tenant's own account, group, password or kernel keys.
 */
export type FindingKind = "added" | "changed" | "removed" | "forbidden" | "tenant";
export interface Finding {
  readonly name: string;
  readonly kind: FindingKind;
}
/** `more` is the number of a residue item's findings that the hub's judgement of the item does not name. */
export type ItemJudgement =
  | { readonly state: "clean" }
  | { readonly state: "found"; readonly found: readonly Finding[]; readonly more: number }
  | { readonly state: "unreadable"; readonly reason: string };

export interface ResidueJudgement {
  /**
   * The verdict about what a tenant left on a host is the worst judgement of all residue items in the snapshot of the host. The verdict `found` is
   * worse than `unreadable`, and `unreadable` is worse than `clean`.
   */
  readonly verdict: ItemJudgement["state"];
  readonly items: Readonly<Record<ResidueItem, ItemJudgement>>;
}

/**
 * A residue item that the agent could not read is not clean; nor is an item unreadable in the baseline, if the item is compared with the baseline.
 * Without a baseline (the snapshot from before the first tenant), a residue item that is compared with the baseline is not clean.
 */
export function compareResidue(
  baseline: ResidueSnapshot | null,
  snapshot: ResidueSnapshot,
  tenant: ResidueTenant | null,
): ResidueJudgement {
  const judged = RESIDUE_ITEM_NAMES.map((item) => [item, judge(item, baseline, snapshot, tenant)] as const);
  const states = new Set(judged.map(([, { state }]) => state));
  const verdict = (["found", "unreadable"] as const).find((state) => states.has(state)) ?? "clean";
  return { verdict, items: Object.fromEntries(judged) as Record<ResidueItem, ItemJudgement> };
}

function judge(
  item: ResidueItem,
  baseline: ResidueSnapshot | null,
  snapshot: ResidueSnapshot,
  tenant: ResidueTenant | null,
): ItemJudgement {
  const rule = ruleOf(item);
  const now = snapshot[item];
  if (rule === "tenant" && tenant === null) return now === undefined ? CLEAN : judgeForbidden(now);
  if (now === undefined) return unreadable("The snapshot does not contain this item. Update the node's agent.");
  if (rule === "none" || rule === "tenant") return judgeForbidden(now);
  const own = "entries" in now ? now.entries.filter(({ name }) => isOf(item, name, tenant)) : [];
  const compared = differences(rule, baseline, baseline?.[item], now);
  if (typeof compared === "string" && own.length === 0) return unreadable(compared);
  const names = new Set(own.map(({ name }) => name));
  const others = typeof compared === "string" ? [] : compared.filter(({ name }) => !names.has(name));
  return found([...[...names].map((name): Finding => ({ name, kind: "tenant" })), ...others]);
}

const CLEAN: ItemJudgement = { state: "clean" };
const unreadable = (reason: string): ItemJudgement => ({ state: "unreadable", reason });

/**
 * True if an entry of a residue snapshot is the tenant's own account, group, password or kernel keys, which are findings even if the baseline
 * contains the entry.
 */
function isOf(item: ResidueItem, name: string, tenant: ResidueTenant | null): boolean {
  if (tenant === null) return false;
  if (item === "credentials") return name === kernelKeysOf(tenant.uid);
  return item === "accounts" && name.split(" ")[1] === tenant.login_user;
}

function judgeForbidden(now: ResidueReading): ItemJudgement {
  if ("unreadable" in now) return unreadable(now.unreadable);
  return found(now.entries.map(({ name }) => ({ name, kind: "forbidden" })));
}

/**
 * Returns the differences between a residue item and the baseline (the snapshot from before the first tenant), or as text why the two cannot be
 * compared.
 */
function differences(
  rule: keyof typeof REMOVED_COUNTS,
  baseline: ResidueSnapshot | null,
  before: ResidueReading | undefined,
  now: ResidueReading,
): readonly Finding[] | string {
  if ("unreadable" in now) return now.unreadable;
  if (baseline === null) return "The node has no baseline of its generation to compare with.";
  if (before === undefined)
    return "The baseline does not contain this item, because an older agent took it. Take a new baseline.";
  if ("unreadable" in before) return `The baseline could not read this item: ${before.unreadable}`;
  return difference(before.entries, now.entries, REMOVED_COUNTS[rule]);
}

/**
 * For each rule for residue items: which entries of the baseline (the snapshot from before the first tenant) are findings if the newer snapshot lacks
 * them. An unmounted disk still has its files, but the agent does not read them, so a missing mount of a disk is a finding.
 */
const REMOVED_COUNTS = {
  same: () => true,
  no_more: () => false,
  disks_stay: isDiskMount,
} as const satisfies Partial<Record<ResidueRule, (name: string) => boolean>>;

function difference(
  before: readonly ResidueEntry[],
  now: readonly ResidueEntry[],
  removedCounts: (name: string) => boolean,
): readonly Finding[] {
  const known = digestsOf(before);
  const present = digestsOf(now);
  const findings: Finding[] = [];
  for (const [name, digest] of present) {
    const was = known.get(name);
    if (was === undefined) findings.push({ name, kind: "added" });
    else if (was !== digest) findings.push({ name, kind: "changed" });
  }
  for (const name of known.keys())
    if (!present.has(name) && removedCounts(name)) findings.push({ name, kind: "removed" });
  return findings;
}

/** Returns for each name of an entry in a residue snapshot the digests of all entries with this name, joined to one text. */
function digestsOf(entries: readonly ResidueEntry[]): ReadonlyMap<string, string> {
  const digests = new Map<string, string[]>();
  for (const { name, digest } of entries) digests.set(name, [...(digests.get(name) ?? []), digest].sort());
  return new Map([...digests].map(([name, all]) => [name, all.join()]));
}

function found(all: readonly Finding[]): ItemJudgement {
  if (all.length === 0) return CLEAN;
  return { state: "found", found: all.slice(0, MOST_FOUND), more: Math.max(0, all.length - MOST_FOUND) };
}
