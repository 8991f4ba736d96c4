import { expect, it } from "vitest";
import { ProfileCreate } from "../../../../../shared/api/profiles.ts";
import { FIELDS, type Profile } from "./profile-fields.ts";
import { checkProfile, profilePatch, valuesOf } from "./profile-form.ts";

const profile = { ...ProfileCreate.parse({ name: "gpu" }), status: "active" } as Profile;

it("shows the usual profile without a fault, and sends nothing that nobody has changed", () => {
  const values = valuesOf(profile);
  expect(Object.values(checkProfile(values)).filter((error) => error !== undefined)).toEqual([]);
  expect(profilePatch(profile, values)).toEqual({});
});

it("sends each kind of field as the API takes it", () => {
  const changed = {
    ...valuesOf(profile),
    ...{ description: "  ", pxe_vlan_vid: "7", node_pxe_iface: "eno1", retired_release_after_seconds: "" },
    ...{ scratch_folders: "/scratch, /data/tmp", clear_free_space: true, turnover_mode: "reimage", is_active: false },
  };
  expect(profilePatch(profile, changed)).toEqual({
    ...{ pxe_vlan_vid: 7, node_pxe_iface: "eno1", retired_release_after_seconds: null },
    ...{ scratch_folders: ["/scratch", "/data/tmp"], clear_free_space: true, turnover_mode: "reimage" },
    status: "disabled",
  });
});

it("says what is wrong before it sends anything", () => {
  const wrong = {
    ...valuesOf(profile),
    ...{ distro_series: "", max_deploy_retry_attempts: "6", data_shares: "/data1", testing_scripts: "a b!" },
  };
  const errors = Object.entries(checkProfile(wrong)).flatMap(([name, error]) => (error === undefined ? [] : [name]));
  expect(errors.toSorted()).toEqual(["data_shares", "distro_series", "max_deploy_retry_attempts", "testing_scripts"]);
});

it("shows every field of a profile but those with a form of their own", () => {
  const shown = new Set<string>(FIELDS.map(({ name }) => name));
  const left = Object.keys(profile).filter((name) => !shown.has(name));
  expect(left.toSorted()).toEqual(["probes", "purge_disks", "readiness_policy", "status"]);
});
