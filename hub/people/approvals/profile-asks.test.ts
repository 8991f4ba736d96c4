import { describe, expect, it } from "vitest";
import { SECOND_PERSON, type SecondPerson } from "../../../shared/api/approvals.ts";
import { ProfileCreate } from "../../../shared/api/profiles.ts";
import { bothAsk, changeAsks, creationAsks, moveAsks, PROFILE_FIELDS } from "./profile-asks.ts";

const FIELDS = Object.keys(PROFILE_FIELDS) as (keyof ProfileCreate)[];
const DISKS = FIELDS.filter((field) => PROFILE_FIELDS[field] === "disks");
const SCRIPTS = FIELDS.filter((field) => PROFILE_FIELDS[field] === "scripts" || DISKS.includes(field));
/** The entries that ask for a change of the field. */
const protecting = (field: keyof ProfileCreate): SecondPerson[] =>
  SECOND_PERSON.filter((entry) => (entry === "scripts" ? SCRIPTS : entry === "erase" ? DISKS : []).includes(field));
const profile = (name: string, more: object = {}): ProfileCreate => ProfileCreate.parse({ name, ...more });
const withRules = (secondPerson: readonly SecondPerson[]): ProfileCreate =>
  profile("p", { second_person: secondPerson });

/** Another value for each field of a profile: the value of a field is only compared, so a text stands for every kind of value. */
const changed = (field: keyof ProfileCreate): object => ({ [field]: "another value" });
/** Every set of entries, each as the bits of a number. */
const SUBSETS = Array.from({ length: 2 ** SECOND_PERSON.length }, (_, bits) =>
  SECOND_PERSON.filter((_entry, at) => ((bits >> at) & 1) === 1),
);

describe("the change of a profile", () => {
  it("asks for each field that runs code or destroys data on hosts, if the profile says so, and for no other field", () => {
    expect(SCRIPTS.toSorted()).toEqual(
      [
        ...[
          "boot_disk_pattern",
          "commissioning_scripts",
          "data_shares",
          "distro_series",
          "erase_unexpected_signatures",
        ],
        ...["initialize_extra_disks", "purge_disks", "scratch_folders", "site_bootstrap_bundle_ref", "testing_scripts"],
      ].toSorted(),
    );
    expect(DISKS.toSorted()).toEqual(
      [
        ...["data_shares", "erase_unexpected_signatures", "initialize_extra_disks"],
        ...["purge_disks", "scratch_folders"],
      ].toSorted(),
    );
    for (const rules of SUBSETS)
      for (const field of FIELDS.filter((one) => PROFILE_FIELDS[one] !== "rule")) {
        const entries = protecting(field).filter((entry) => rules.includes(entry));
        const judged = changeAsks(withRules(rules), changed(field));
        expect([field, rules, judged.because]).toEqual([
          field,
          rules,
          entries.map((entry) => ({ entry, profile: "p" })),
        ]);
        expect(judged.changes).toEqual(entries.length > 0 ? [field] : []);
      }
  });

  it("asks for nothing if the request names a field with its present value", () => {
    const now = withRules(SECOND_PERSON);
    expect(changeAsks(now, now).because).toEqual([]);
  });

  it("asks for each entry that it takes out of second_person, and for no entry that it adds", () => {
    for (const before of SUBSETS)
      for (const after of SUBSETS) {
        const lost = before.filter((entry) => !after.includes(entry));
        const judged = changeAsks(withRules(before), { second_person: after });
        expect(judged.because.map(({ entry }) => entry)).toEqual(lost);
        expect(judged.changes).toEqual(lost.length === 0 ? [] : ["second_person"]);
      }
  });

  it("is judged by the rules before the change, so a request that takes out the rule and changes a script asks for both", () => {
    const judged = changeAsks(withRules(["scripts"]), { second_person: [], site_bootstrap_bundle_ref: "https://x" });
    expect(judged).toEqual({
      because: [{ entry: "scripts", profile: "p" }],
      changes: ["site_bootstrap_bundle_ref", "second_person"],
    });
  });
});

describe("a new profile", () => {
  const defaults = profile("new");
  const other = (secondPerson: readonly SecondPerson[]) => ({ profile: "old", secondPerson });

  it("asks for each entry that another profile of the site has and the new one has not", () => {
    for (const own of SUBSETS)
      for (const others of SUBSETS) {
        const { because } = creationAsks(profile("new", { second_person: own }), [other(others)], defaults);
        expect(because).toEqual(
          others.filter((entry) => !own.includes(entry)).map((entry) => ({ entry, profile: "old" })),
        );
      }
  });

  it("asks for scripts that differ from the defaults, if the new profile or another profile of the site asks", () => {
    const scripted = (own: readonly SecondPerson[]) =>
      profile("new", { commissioning_scripts: ["burn-in"], second_person: own });
    expect(creationAsks(scripted([]), [other([])], defaults).because).toEqual([]);
    expect(creationAsks(scripted(["scripts"]), [other([])], defaults)).toEqual({
      because: [{ entry: "scripts", profile: "new" }],
      changes: ["commissioning_scripts"],
    });
    expect(creationAsks(scripted(["scripts"]), [other(["scripts"])], defaults).because).toHaveLength(2);
    expect(creationAsks(scripted([]), [other(["scripts"])], defaults).changes).toEqual([
      "commissioning_scripts",
      "second_person",
    ]);
  });
});

it("a request that makes two changes asks for each entry once", () => {
  const [erase, scripts] = [
    { entry: "erase", profile: "p" },
    { entry: "scripts", profile: "p" },
  ] as const;
  const one = { because: [erase], changes: ["a", "b"] };
  const others = { because: [erase, scripts, { ...erase, profile: "q" }], changes: ["b", "c"] };
  expect(bothAsk(one, others)).toEqual({
    because: [erase, scripts, { ...erase, profile: "q" }],
    changes: ["a", "b", "c"],
  });
});

it("a host that gets another profile loses the entries that only its old profile has", () => {
  for (const from of SUBSETS)
    for (const to of SUBSETS)
      expect(moveAsks({ profile: "from", secondPerson: from }, { profile: "to", secondPerson: to })).toEqual(
        from.filter((entry) => !to.includes(entry)).map((entry) => ({ entry, profile: "from" })),
      );
});
