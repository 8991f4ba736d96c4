import { type Because, SECOND_PERSON, type SecondPerson } from "../../../shared/api/approvals.ts";
import type { ProfileCreate } from "../../../shared/api/profiles.ts";
import { canonicalJson } from "../../../shared/json.ts";

/**
 * What a field of a profile decides. `scripts` marks a profile field that decides which code runs on hosts, or which system is installed on them.
 * `disks` marks a profile field that decides which disks and folders of a host are formatted or emptied; the entries `scripts` and `erase` of
 * `second_person` both protect such a field. `rule` marks the profile field `second_person`, which lists what needs a second person. `plain`:
 * everything else.
 */
export const PROFILE_FIELDS: Readonly<Record<keyof ProfileCreate, "scripts" | "disks" | "rule" | "plain">> = {
  name: "plain",
  description: "plain",
  distro_series: "scripts",
  architecture: "plain",
  pxe_iface: "plain",
  pxe_vlan_vid: "plain",
  node_pxe_iface: "plain",
  commissioning_scripts: "scripts",
  testing_scripts: "scripts",
  strict_pxe_preflight: "plain",
  enable_phase2_roce: "plain",
  roce_required: "plain",
  require_hw_sync: "plain",
  hardware_sync_interval_seconds: "plain",
  enable_deploy_retry_on_datasource_failure: "plain",
  max_deploy_retry_attempts: "plain",
  auto_claim_single_new_machine: "plain",
  batch_max_parallel: "plain",
  deploy_max_parallel: "plain",
  site_bootstrap_bundle_ref: "scripts",
  initialize_extra_disks: "disks",
  erase_unexpected_signatures: "disks",
  boot_disk_pattern: "scripts",
  turnover_mode: "plain",
  scratch_folders: "disks",
  data_shares: "disks",
  weka_prefixes: "plain",
  clear_free_space: "plain",
  purge_disks: "disks",
  gpu_reset_up_to: "plain",
  gpu_claim_level: "plain",
  gpu_claim_percent: "plain",
  soft_reset_after_root: "plain",
  enrollment_token_ttl_seconds: "plain",
  preflight_timeout_seconds: "plain",
  discovery_timeout_seconds: "plain",
  commission_timeout_seconds: "plain",
  configure_timeout_seconds: "plain",
  deploy_timeout_seconds: "plain",
  hardware_sync_seed_timeout_seconds: "plain",
  hardware_sync_health_timeout_seconds: "plain",
  agent_enrollment_timeout_seconds: "plain",
  release_timeout_seconds: "plain",
  power_off_timeout_seconds: "plain",
  retired_release_after_seconds: "plain",
  readiness_policy: "plain",
  probes: "plain",
  second_person: "rule",
};

type Fields = { readonly [K in keyof ProfileCreate]?: ProfileCreate[K] | undefined };
interface Rules {
  readonly profile: string;
  readonly secondPerson: readonly SecondPerson[];
}

type Protected = "scripts" | "disks";
/** The kinds of profile fields that each entry of `second_person` protects. */
const PROTECTS: Readonly<Record<SecondPerson, readonly Protected[]>> = {
  erase: ["disks"],
  full_decommission: [],
  scripts: ["scripts", "disks"],
};
const isOneOf = (kinds: readonly Protected[], field: keyof ProfileCreate): boolean =>
  kinds.some((kind) => PROFILE_FIELDS[field] === kind);

/** The fields of a profile that a request changes and that the given entry of `second_person` protects. */
const changedOf = (entry: SecondPerson, from: Fields, to: Fields): readonly string[] =>
  (Object.keys(PROFILE_FIELDS) as (keyof ProfileCreate)[]).filter(
    (field) =>
      isOneOf(PROTECTS[entry], field) &&
      to[field] !== undefined &&
      canonicalJson(to[field]) !== canonicalJson(from[field] ?? null),
  );

const lackOf = (asks: readonly SecondPerson[], others: readonly SecondPerson[]): SecondPerson[] =>
  asks.filter((entry) => !others.includes(entry));

/** Why a change of a profile needs a second person: the entries of `second_person` with their profiles, and the fields that the change concerns. */
export interface ProfileAsks {
  readonly because: Because;
  readonly changes: readonly string[];
}

/**
 * Judges the change of a profile by the profile's `second_person` from before the change, so that nobody can remove an entry first and then change
 * the protected fields alone.
 */
export function changeAsks(before: ProfileCreate, patch: Fields): ProfileAsks {
  const rules = before.second_person;
  const fields = new Set(rules.flatMap((entry) => changedOf(entry, before, patch)));
  const lost = patch.second_person === undefined ? [] : lackOf(rules, patch.second_person);
  const asks = (entry: SecondPerson): boolean =>
    lost.includes(entry) || (rules.includes(entry) && changedOf(entry, before, patch).length > 0);
  return {
    because: SECOND_PERSON.filter(asks).map((entry) => ({ entry, profile: before.name })),
    changes: [...fields, ...(lost.length === 0 ? [] : ["second_person"])],
  };
}

/**
 * Judges a new profile by its own `second_person` and by those of the site's other profiles, because no second person has seen which scripts would
 * run, and which disks would be erased, on hosts with the new profile. `defaults` is the profile that a request creates if it names no field.
 */
export function creationAsks(created: ProfileCreate, others: readonly Rules[], defaults: Fields): ProfileAsks {
  const asked = [{ profile: created.name, secondPerson: created.second_person }, ...others];
  const isChanged = (entry: SecondPerson): boolean => changedOf(entry, defaults, created).length > 0;
  const because = asked.flatMap(({ profile, secondPerson }) =>
    secondPerson
      .filter((entry) => !created.second_person.includes(entry) || isChanged(entry))
      .map((entry) => ({ entry, profile })),
  );
  const lacks = because.some(({ entry }) => !created.second_person.includes(entry));
  const fields = new Set(because.flatMap(({ entry }) => changedOf(entry, defaults, created)));
  return { because, changes: [...fields, ...(lacks ? ["second_person"] : [])] };
}

/** Joins the reasons for a second person of two changes of a profile that one request makes. */
export function bothAsk(one: ProfileAsks, other: ProfileAsks): ProfileAsks {
  const isNew = ({ entry, profile }: Because[number]): boolean =>
    !one.because.some((known) => known.entry === entry && known.profile === profile);
  return {
    because: [...one.because, ...other.because.filter(isNew)],
    changes: [...new Set([...one.changes, ...other.changes])],
  };
}

/**
 * Returns the entries of `second_person` that the profile `from` has and the profile `to` lacks, which no longer protect hosts that change from
 * `from` to `to`.
 */
export const moveAsks = (from: Rules, to: Rules): Because =>
  lackOf(from.secondPerson, to.secondPerson).map((entry) => ({ entry, profile: from.profile }));
