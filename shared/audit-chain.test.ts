import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  AUDIT_FORMAT,
  type AuditContent,
  type ChainPoint,
  ChainVerifier,
  checkHead,
  contentText,
  entryText,
  MOST_FAULTS,
  type SealedEntry,
  START,
} from "./audit-chain.ts";
import type { Json } from "./json.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

const content = (n: number): AuditContent => ({
  actor: "ann",
  via: "token",
  role: "admin",
  address: "10.0.0.1",
  request_id: `r-${n}`,
  action: "drainNode",
  target: `nodes/${n}`,
  outcome: "done",
  error_code: null,
  reason: "worn out",
  details: { prior: { status: "active" }, n } as Json,
});

const sealed = (last: ChainPoint, what: AuditContent, site: string | null = null): SealedEntry => {
  const placed = {
    sequence: last.sequence + 1,
    occurred_at: `2026-11-27T13:00:${String(last.sequence % 60).padStart(2, "0")}.123456Z`,
    site_id: site,
    content_sha256: sha256(contentText(what)),
    previous_sha256: last.entry_sha256,
  };
  return { format: AUDIT_FORMAT, ...what, ...placed, entry_sha256: sha256(entryText(placed)) };
};

const chainOf = (length: number, from: ChainPoint = START): SealedEntry[] => {
  const entries: SealedEntry[] = [];
  for (let n = 1; n <= length; n += 1) entries.push(sealed(entries.at(-1) ?? from, content(n)));
  return entries;
};

const verify = (entries: readonly SealedEntry[], start: ChainPoint | null = START) => {
  const verifier = new ChainVerifier(start, sha256);
  for (const entry of entries) verifier.add(entry);
  return verifier.result;
};
const codesOf = (entries: readonly SealedEntry[], start: ChainPoint | null = START) =>
  verify(entries, start).faults.map(({ code, sequence }) => [code, sequence]);

const without = (entries: readonly SealedEntry[], at: number): SealedEntry[] => entries.toSpliced(at, 1);
const changed = (entries: readonly SealedEntry[], at: number, change: Partial<SealedEntry>): SealedEntry[] =>
  entries.map((entry, index) => (index === at ? { ...entry, ...change } : entry));

describe("an audit chain", () => {
  const chain = chainOf(9);

  it("is right from its begin on, and from a known entry on", () => {
    expect(verify(chain)).toMatchObject({ entries: 9, first: 1, last: { sequence: 9 }, faultCount: 0 });
    expect(codesOf(chain.slice(4), chain[3])).toEqual([]);
    expect(codesOf(chain.slice(4), null)).toEqual([]);
  });

  it.each(Object.keys(chain[4] ?? {}).filter((field) => field !== "format"))(
    "shows which entry has another %s",
    (field) => {
      const other = { sequence: 77, site_id: "other", details: { n: 6 } }[field] ?? `${sha256("other")}`;
      const found = codesOf(changed(chain, 4, { [field]: other }));
      expect(found.length).toBeGreaterThan(0);
      // A changed hash of an entry also breaks the place of the next entry. A changed number concerns the entries around the gap.
      expect(found.filter(([, at]) => at !== 5 && at !== 6 && at !== 77)).toEqual([]);
    },
  );

  it("shows an entry whose content hash was made to fit its changed content", () => {
    const forged = { ...content(5), actor: "eve" };
    const change = { ...forged, content_sha256: sha256(contentText(forged)) };
    expect(codesOf(changed(chain, 4, change))).toEqual([["entry_changed", 5]]);
  });

  it("shows that the entries after a forged entry do not continue it", () => {
    const forged = sealed(chain[3] ?? START, { ...content(5), actor: "eve" });
    expect(codesOf(changed(chain, 4, forged))).toEqual([["chain_broken", 6]]);
  });

  it("shows missing entries, and two entries in the wrong order", () => {
    expect(codesOf(without(chain, 4))).toEqual([["entries_missing", 5]]);
    expect(codesOf(chain.slice(2))).toEqual([["entries_missing", 1]]);
    const [a, b] = [chain[4], chain[5]] as [SealedEntry, SealedEntry];
    expect(codesOf(chain.toSpliced(4, 2, b, a))).toEqual([
      ["entries_missing", 5],
      ["out_of_order", 5],
    ]);
  });

  it("accepts an entry that was exported twice, and no second entry with the number of another", () => {
    expect(verify([...chain.slice(0, 6), ...chain.slice(3)])).toMatchObject({ repeated: 3, faultCount: 0 });
    const fork = chainOf(2, chain[5]).map((entry) => ({ ...entry }));
    expect(codesOf([...chain, ...fork])).toEqual([
      ["forked", 7],
      ["forked", 8],
    ]);
  });

  it("after a restore is right in a file of its own, and forked in a file that goes on from before the restore", () => {
    const since = chainOf(6, chain[5]);
    expect(codesOf([...chain, ...since])).toEqual([
      ["forked", 7],
      ["forked", 8],
      ["forked", 9],
      ["chain_broken", 10],
    ]);
    for (const file of [chain, since]) expect(verify(file, null)).toMatchObject({ faultCount: 0 });
    const kept = { sequence: 9, entry_sha256: chain[8]?.entry_sha256 ?? "" };
    const codes = (end: number, entry: ChainPoint | undefined) =>
      checkHead(kept, { entry, end }).map(({ code }) => code);
    expect([codes(8, undefined), codes(12, since[2])]).toEqual([["head_missing"], ["head_differs"]]);
  });

  it("shows an entry of which only the seal is left, and a gap before it", () => {
    const verifier = new ChainVerifier(START, sha256);
    for (const entry of chain.slice(0, 3)) verifier.add(entry);
    verifier.removed(chain[4] as ChainPoint);
    for (const entry of chain.slice(5)) verifier.add(entry);
    expect(verifier.result.faults.map(({ code, sequence }) => [code, sequence])).toEqual([
      ["entries_missing", 4],
      ["entry_removed", 5],
    ]);
  });

  it("counts all faults and lists the first of them", () => {
    const verifier = new ChainVerifier(START, sha256);
    for (const entry of chainOf(MOST_FAULTS + 5)) verifier.add({ ...entry, actor: "eve" });
    expect(verifier.result).toMatchObject({ faultCount: MOST_FAULTS + 5 });
    expect(verifier.result.faults).toHaveLength(MOST_FAULTS);
  });
});

describe("a kept head", () => {
  const chain = chainOf(5);
  const point = (n: number, hash = chain[n - 1]?.entry_sha256 ?? "") => ({ sequence: n, entry_sha256: hash });

  it.each([
    ["is in the chain", point(3), point(3), 5, []],
    ["is the end of the chain", point(5), point(5), 5, []],
    ["was removed by retention", point(3), undefined, 5, []],
    ["is behind the end of the chain", point(5), undefined, 3, [["head_missing", 4]]],
    ["is another entry than that of the chain", point(3, "f".repeat(64)), point(3), 5, [["head_differs", 3]]],
  ] as const)("%s", (_, head, entry, end, expected) => {
    expect(checkHead(head, { entry, end }).map(({ code, sequence }) => [code, sequence])).toEqual(expected);
  });
});

it("has one text for each content: no part of a field can move into another field", () => {
  const field = fc.option(fc.string({ maxLength: 6, unit: fc.constantFrom("a", "1", ":", "-", "é") }), { nil: null });
  const some = fc.record({ via: field, address: field, reason: field, error_code: field });
  fc.assert(
    fc.property(some, some, (a, b) => {
      const [x, y] = [a, b].map((part) => contentText({ ...content(1), ...part }));
      expect(x === y).toBe(JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort()));
    }),
  );
});
