import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareResidue, type FindingKind, MOST_FOUND } from "./compare.ts";
import { RESIDUE_ITEM_NAMES, RESIDUE_ITEMS, type ResidueItem, ruleOf } from "./items.ts";
import { LONGEST_NAME, type ResidueEntry, type ResidueReading, ResidueSnapshot } from "./snapshot.ts";

const A = "AAAAAAAAAAAAAAAA";
const B = "BBBBBBBBBBBBBBBB";
const TENANT = { login_user: "ann", uid: 1001 };
const entries = (...pairs: readonly (readonly [string, string])[]): ResidueReading => ({
  entries: pairs.map(([name, digest]) => ({ name, digest })),
});
const UNREADABLE: ResidueReading = { unreadable: "the disk is gone" };
const empty = (): ResidueSnapshot => Object.fromEntries(RESIDUE_ITEM_NAMES.map((item) => [item, { entries: [] }]));
const withItem = (item: ResidueItem, reading: ResidueReading | undefined): ResidueSnapshot => {
  const { [item]: _replaced, ...others } = empty();
  return reading === undefined ? others : { ...others, [item]: reading };
};

/** The readings of a residue item that a comparison must tell apart: missing, unreadable, no entry, one entry, the entry changed, another entry. */
const READINGS = {
  missing: undefined,
  unreadable: UNREADABLE,
  nothing: entries(),
  thing: entries(["x", A]),
  changed: entries(["x", B]),
  other: entries(["y", A]),
} as const;
type Kind = keyof typeof READINGS;
const KINDS = Object.keys(READINGS) as Kind[];

function expected(rule: string, hasTenant: boolean, hasBaseline: boolean, before: Kind, now: Kind): string {
  if (rule === "tenant" && !hasTenant && now === "missing") return "clean";
  if (now === "missing" || now === "unreadable") return "unreadable";
  const names = { nothing: [], thing: ["x"], changed: ["x"], other: ["y"] }[now];
  if (rule === "tenant" || rule === "none")
    return names.length === 0 ? "clean" : names.map((name) => `${name} forbidden`).join();
  if (!hasBaseline || before === "missing" || before === "unreadable") return "unreadable";
  const change: Record<"nothing" | "thing" | "changed" | "other", Record<typeof now, string[]>> = {
    nothing: { nothing: [], thing: ["x added"], changed: ["x added"], other: ["y added"] },
    thing: { nothing: ["x removed"], thing: [], changed: ["x changed"], other: ["y added", "x removed"] },
    changed: { nothing: ["x removed"], thing: ["x changed"], changed: [], other: ["y added", "x removed"] },
    other: { nothing: ["y removed"], thing: ["x added", "y removed"], changed: ["x added", "y removed"], other: [] },
  };
  const all = change[before][now].filter((finding) => rule === "same" || !finding.endsWith("removed"));
  return all.length === 0 ? "clean" : all.join();
}

const ofRule = (rule: string): ResidueItem => {
  const item = RESIDUE_ITEM_NAMES.find((one) => ruleOf(one) === rule);
  if (item === undefined) throw new Error(`no item has the rule ${rule}`);
  return item;
};
const RULES = ["same", "no_more", "disks_stay", "none", "tenant"];
const CASES = RULES.flatMap((rule) =>
  [true, false].flatMap((hasTenant) =>
    [true, false].flatMap((hasBaseline) =>
      KINDS.flatMap((before) => KINDS.map((now) => ({ rule, hasTenant, hasBaseline, before, now }))),
    ),
  ),
);

describe("the comparison of an item, for every rule and every pair of readings", () => {
  it("covers every rule that an item has", () => {
    expect(new Set(Object.values(RESIDUE_ITEMS).map(({ rule }) => rule))).toEqual(new Set(RULES));
  });

  it.each(CASES)("$rule, tenant $hasTenant, baseline $hasBaseline: $before, then $now", (one) => {
    const item = ofRule(one.rule);
    const judged = compareResidue(
      one.hasBaseline ? withItem(item, READINGS[one.before]) : null,
      withItem(item, READINGS[one.now]),
      one.hasTenant ? TENANT : null,
    ).items[item];
    const told =
      judged.state === "found" ? judged.found.map(({ name, kind }) => `${name} ${kind}`).join() : judged.state;
    expect(told).toBe(expected(one.rule, one.hasTenant, one.hasBaseline, one.before, one.now));
  });
});

describe("the mounts of a host", () => {
  const judged = (name: string): string => {
    const { state } = compareResidue(withItem("mounts", entries([name, A])), empty(), null).items.mounts;
    return state;
  };
  it.each([
    "ext4 /dev/sdb1 on /data",
    "xfs /dev/mapper/vg-scratch on /mnt/a b on c",
    "ext4 /dev/loop* on /share1",
    "newfs /dev/nvme1n1 on /home",
    "bcachefs /dev/sda:/dev/sdb on /data",
    "btrfs /dev/sdb (/@data) on /data",
    "zfs tank/data on /tank/data",
  ])("must not lose %s", (name) => {
    const before = withItem("mounts", entries([name, A]));
    const now = compareResidue(before, empty(), null).items.mounts;
    expect(now).toEqual({ state: "found", found: [{ name, kind: "removed" }], more: 0 });
    expect(compareResidue(before, before, null).items.mounts).toEqual({ state: "clean" });
  });
  it.each([
    "tmpfs tmpfs on /run/user/1000",
    "overlay overlay on /var/lib/docker/overlay2/*/merged",
    "nfs4 server:/x on /mnt/x",
    "wekafs backend/fs on /mnt/weka",
    "squashfs /dev/loop* on /snap/core22/1",
    "iso9660 /dev/sr0 on /mnt/cd",
    "fuse.gvfs /dev/fuse on /run/user/1/gvfs",
    "ext4 /dev/sda1 (/srv/x) on /var/lib/kubelet/pods/x",
    "vfat /dev/sda15 on /boot/efi",
    "in the namespace of slurm: ext4 /dev/sdb1 on /data",
    "nothing of this form",
  ])("may lose %s", (name) => expect(judged(name)).toBe("clean"));
});

const Entry: fc.Arbitrary<ResidueEntry> = fc.record({
  name: fc.oneof(
    fc.constantFrom("x", "y", "account ann", "__proto__", "constructor"),
    fc.string({ minLength: 1, maxLength: 30 }),
  ),
  digest: fc.constantFrom(A, B),
});
const Reading: fc.Arbitrary<ResidueReading> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ entries: fc.array(Entry, { maxLength: 30 }) }) },
  { weight: 1, arbitrary: fc.constant(UNREADABLE) },
);
const Snapshot: fc.Arbitrary<ResidueSnapshot> = fc.record(
  Object.fromEntries(RESIDUE_ITEM_NAMES.map((item) => [item, Reading])),
  { requiredKeys: [] },
);
const whole = (snapshot: ResidueSnapshot): boolean =>
  RESIDUE_ITEM_NAMES.every((item) => snapshot[item] !== undefined && "entries" in snapshot[item]);

describe("the kernel keys of the tenant", () => {
  const keys = withItem("credentials", entries(["kernel keys of user 1001", A], ["kernel keys of user 1002", A]));
  it("are a finding also if the baseline has them, and those of others are not", () => {
    const found = [{ name: "kernel keys of user 1001", kind: "tenant" }];
    expect(compareResidue(keys, keys, TENANT).items.credentials).toEqual({ state: "found", found, more: 0 });
    expect(compareResidue(keys, keys, null).items.credentials).toEqual({ state: "clean" });
    expect(compareResidue(null, keys, TENANT).items.credentials).toEqual({ state: "found", found, more: 0 });
  });
});

describe("the comparison of whole snapshots", () => {
  it("is clean for a readable host that did not change", () => {
    fc.assert(
      fc.property(fc.record(Object.fromEntries(RESIDUE_ITEM_NAMES.map((item) => [item, Reading]))), (snapshot) => {
        const clean = Object.fromEntries(
          RESIDUE_ITEM_NAMES.map((item) => [
            item,
            ["none", "tenant"].includes(ruleOf(item)) ? entries() : snapshot[item],
          ]),
        ) as ResidueSnapshot;
        const { verdict } = compareResidue(clean, clean, null);
        expect(verdict).toBe(whole(clean) ? "clean" : "unreadable");
      }),
    );
  });

  it("judges every item, and the verdict is the worst of them", () => {
    fc.assert(
      fc.property(fc.option(Snapshot), Snapshot, fc.option(fc.constant(TENANT)), (baseline, snapshot, tenant) => {
        const { verdict, items } = compareResidue(baseline, snapshot, tenant);
        expect(Object.keys(items)).toEqual([...RESIDUE_ITEM_NAMES]);
        const states = Object.values(items).map(({ state }) => state);
        const worst = states.includes("found") ? "found" : states.includes("unreadable") ? "unreadable" : "clean";
        expect(verdict).toBe(worst);
      }),
    );
  });

  it("finds each thing that is added, by its name, and never a thing that was there", () => {
    fc.assert(
      fc.property(Snapshot, Snapshot, (baseline, snapshot) => {
        const { items } = compareResidue(baseline, snapshot, null);
        for (const item of RESIDUE_ITEM_NAMES) {
          const [before, now, judged] = [baseline[item], snapshot[item], items[item]];
          if (before === undefined || now === undefined || "unreadable" in before || "unreadable" in now) continue;
          if (ruleOf(item) === "none" || ruleOf(item) === "tenant") continue;
          const known = new Set(before.entries.map(({ name }) => name));
          const added = [...new Set(now.entries.map(({ name }) => name).filter((name) => !known.has(name)))];
          const named = (kind: FindingKind): string[] =>
            judged.state === "found" ? judged.found.filter((one) => one.kind === kind).map(({ name }) => name) : [];
          expect(named("added")).toEqual(added.slice(0, named("added").length));
          if (added.length > 0) expect(judged.state).toBe("found");
          if (judged.state === "found" && judged.more === 0) expect(named("added")).toEqual(added);
        }
      }),
    );
  });

  it("names a bounded number of findings and counts the others", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3 * MOST_FOUND }), (count) => {
        const now = entries(...Array.from({ length: count }, (_, index) => [`file ${index}`, A] as const));
        const judged = compareResidue(empty(), withItem("cron_and_at", now), null).items.cron_and_at;
        if (count === 0) expect(judged).toEqual({ state: "clean" });
        else if (judged.state === "found") {
          expect(judged.found).toHaveLength(Math.min(count, MOST_FOUND));
          expect(judged.found.length + judged.more).toBe(count);
        } else expect.fail(judged.state);
      }),
    );
  });

  it("finds the tenant's own account even if the baseline contains it, or if there is no baseline", () => {
    const now = withItem("accounts", entries(["account ann", A], ["group ann", A], ["account anna", A]));
    const kinds = (baseline: ResidueSnapshot | null, tenant: typeof TENANT | null) => {
      const judged = compareResidue(baseline, now, tenant).items.accounts;
      return judged.state === "found" ? judged.found : judged.state;
    };
    const own = ["account ann", "group ann"].map((name) => ({ name, kind: "tenant" }));
    expect(kinds(now, TENANT)).toEqual(own);
    expect(kinds(null, TENANT)).toEqual(own);
    expect(kinds(now, null)).toBe("clean");
    expect(kinds(null, null)).toBe("unreadable");
    expect(kinds(empty(), TENANT)).toEqual([...own, { name: "account anna", kind: "added" }]);
  });

  it("compares two entries of one name as one thing, in any order", () => {
    const two = entries(["x", A], ["x", B]);
    const swapped = entries(["x", B], ["x", A]);
    expect(compareResidue(withItem("swap", two), withItem("swap", swapped), null).items.swap).toEqual({
      state: "clean",
    });
    expect(compareResidue(withItem("swap", two), withItem("swap", entries(["x", A])), null).items.swap).toEqual({
      state: "found",
      found: [{ name: "x", kind: "changed" }],
      more: 0,
    });
  });
});

describe("the schema of a snapshot", () => {
  it.each([
    ["an unknown item", { coffee: { entries: [] } }],
    ["a name that is too long", { swap: { entries: [{ name: "x".repeat(LONGEST_NAME + 1), digest: A }] } }],
    ["a digest of another form", { swap: { entries: [{ name: "x", digest: "a b" }] } }],
    ["a reading without entries or reason", { swap: {} }],
    ["an empty reason", { swap: { unreadable: "" } }],
  ])("refuses %s", (_what, snapshot) => {
    expect(ResidueSnapshot.safeParse(snapshot).success).toBe(false);
  });

  it("keeps a name that is also a member of every object", () => {
    const snapshot = JSON.parse(`{"swap":{"entries":[{"name":"__proto__","digest":"${A}"}]}}`);
    expect(ResidueSnapshot.parse(snapshot).swap).toEqual({ entries: [{ name: "__proto__", digest: A }] });
  });
});
