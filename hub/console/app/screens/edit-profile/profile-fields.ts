import type { Answer } from "../../api/schema.ts";
import { type Check, interfaceName, name, optional, partsOf, present, whole } from "../../forms/checks.ts";

export type Profile = Answer<"getMaasSiteProfile">;
type NamesOf<Type> = { [Name in keyof Profile]: Profile[Name] extends Type ? Name : never }[keyof Profile];

interface About {
  readonly label: string;
  readonly about?: string;
}
/** A field of a profile, with the kind of input in which a person edits it. An empty input of a field that may be null means null. */
export type Field = About &
  (
    | { readonly kind: "text"; readonly name: NamesOf<string | null>; readonly check: Check; readonly empty?: "null" }
    | { readonly kind: "number"; readonly name: NamesOf<number | null>; readonly check: Check; readonly empty?: "null" }
    | { readonly kind: "flag"; readonly name: NamesOf<boolean> }
    | { readonly kind: "list"; readonly name: NamesOf<string[]>; readonly check: Check }
    | { readonly kind: "choice"; readonly name: NamesOf<string>; readonly choices: readonly string[] }
  );

export interface Group {
  readonly title: string;
  readonly about?: string;
  readonly fields: readonly Field[];
}

const MOST_SECONDS = 604_800;
const seconds = (name: NamesOf<number>, label: string): Field => ({
  ...{ kind: "number", name, label, about: "In seconds." },
  check: whole(1, MOST_SECONDS),
});
const upTo =
  (most: number, then: Check): Check =>
  (value) =>
    value.length > most ? `is longer than ${most} characters` : then(value);
const any: Check = () => undefined;

/** Checks each value of a profile's field with several values, such as script names, against a pattern. */
const each =
  (most: number, fits: RegExp, message: string): Check =>
  (value) => {
    const parts = partsOf(value);
    const wrong = parts.find((part) => !fits.test(part));
    if (parts.length > most) return `has more than ${most} entries`;
    return wrong === undefined ? undefined : `${wrong} ${message}`;
  };
const scripts = each(32, /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/, "is no name or tag of a script");
const folders = each(16, /^[/]./, "is no folder that begins with /");

/**
 * The fields of a profile that the form shows, in its groups. Only `muster apply`, and not this form, changes readiness policies and lists of disks
 * to purge.
 */
export const GROUPS: readonly Group[] = [
  {
    title: "What is installed",
    fields: [
      { kind: "text", name: "name", label: "Name", check: name },
      { kind: "text", name: "description", label: "Description", check: upTo(512, any), empty: "null" },
      {
        ...{ kind: "text", name: "distro_series", label: "Image", check: upTo(64, present) },
        about: "As MAAS names it, for example ubuntu/noble.",
      },
      { kind: "text", name: "architecture", label: "Architecture", check: upTo(64, present) },
      {
        ...{ kind: "text", name: "boot_disk_pattern", label: "Disk of the system", check: upTo(256, present) },
        about: "A regular expression for model, name or id_path of one disk.",
      },
      {
        ...{ kind: "text", name: "site_bootstrap_bundle_ref", label: "Script of the site", empty: "null" },
        ...{ check: upTo(512, any), about: "https://...#sha256=<64 hex digits>. The first boot runs it." },
      },
      { kind: "list", name: "commissioning_scripts", label: "Commissioning scripts", check: scripts },
      {
        ...{ kind: "list", name: "testing_scripts", label: "Test scripts", check: scripts },
        about: "Empty: MAAS chooses. The single word none: MAAS runs none.",
      },
    ],
  },
  {
    title: "Network",
    about: "An empty field leaves the value of the site in force.",
    fields: [
      {
        ...{ kind: "text", name: "pxe_iface", label: "PXE interface of the rack controllers", empty: "null" },
        check: optional(interfaceName),
      },
      {
        ...{ kind: "number", name: "pxe_vlan_vid", label: "PXE VLAN", empty: "null" },
        check: optional(whole(0, 4094)),
      },
      {
        ...{ kind: "text", name: "node_pxe_iface", label: "PXE interface of the hosts", empty: "null" },
        check: optional(interfaceName),
      },
      { kind: "flag", name: "strict_pxe_preflight", label: "Refuse a host whose PXE wiring looks wrong" },
      { kind: "flag", name: "enable_phase2_roce", label: "Give hosts the addresses of their RoCE rows" },
      { kind: "flag", name: "roce_required", label: "No tenants while the host lacks a RoCE address" },
    ],
  },
  {
    title: "Onboarding",
    fields: [
      { kind: "number", name: "batch_max_parallel", label: "Hosts at once", check: whole(1, 1000) },
      { kind: "number", name: "deploy_max_parallel", label: "Deploys at once", check: whole(1, 1000) },
      { kind: "number", name: "max_deploy_retry_attempts", label: "Automatic redeploys", check: whole(0, 5) },
      {
        ...{ kind: "number", name: "hardware_sync_interval_seconds", label: "Interval of hardware sync" },
        ...{ check: whole(60, 86_400), about: "In seconds." },
      },
      { kind: "flag", name: "require_hw_sync", label: "A host needs a hardware sync before it is active" },
      {
        ...{ kind: "flag", name: "enable_deploy_retry_on_datasource_failure" },
        label: "Deploy again if a first boot found no datasource",
      },
      { kind: "flag", name: "auto_claim_single_new_machine", label: "Claim the only new machine for the host" },
      {
        kind: "flag",
        name: "initialize_extra_disks",
        label: "DESTROYS DATA: format every free disk at the first boot",
      },
      {
        ...{ kind: "flag", name: "erase_unexpected_signatures" },
        label: "DESTROYS DATA: format disks with unknown content too",
      },
    ],
  },
  {
    title: "After a tenant",
    fields: [
      { kind: "choice", name: "turnover_mode", label: "Turnover", choices: ["soft_reset", "reimage"] },
      { kind: "flag", name: "soft_reset_after_root", label: "Clean in place also after a tenant with root" },
      { kind: "list", name: "scratch_folders", label: "Folders that are emptied", check: folders },
      {
        ...{ kind: "list", name: "data_shares", label: "Data disks that are emptied" },
        ...{
          check: each(64, /^[/]share\d{1,3}$/, "is not /share and a number"),
          about: "Mount points such as /share1.",
        },
      },
      { kind: "list", name: "weka_prefixes", label: "Folders of Weka mounts", check: folders },
      { kind: "flag", name: "clear_free_space", label: "Overwrite free space, which may take hours" },
      {
        ...{ kind: "choice", name: "gpu_reset_up_to", label: "Strongest means to free GPUs" },
        choices: ["reset", "reload", "power_cycle"],
      },
      {
        ...{ kind: "choice", name: "gpu_claim_level", label: "What is shown about GPU memory" },
        choices: ["reset_only", "overwritten", "challenge_verified"],
      },
      { kind: "number", name: "gpu_claim_percent", label: "Overwritten GPU memory, percent", check: whole(1, 100) },
      {
        ...{ kind: "number", name: "retired_release_after_seconds", label: "Release of a retired node after" },
        ...{ check: optional(whole(0, 31_536_000)), empty: "null", about: "In seconds. Empty: never by itself." },
      },
    ],
  },
  {
    title: "Second person",
    fields: [
      {
        ...{ kind: "list", name: "second_person", label: "What waits for a second person" },
        check: each(3, /^(?:erase|full_decommission|scripts)$/, "is not erase, full_decommission or scripts"),
        about: "erase, full_decommission and scripts. It needs a sign-in by a provider.",
      },
    ],
  },
  {
    title: "Longest waits",
    about: "The token of an enrollment must live at least as long as a deploy may take.",
    fields: [
      seconds("enrollment_token_ttl_seconds", "Token of an enrollment"),
      seconds("preflight_timeout_seconds", "Checks before the begin"),
      seconds("discovery_timeout_seconds", "Discovery"),
      seconds("commission_timeout_seconds", "Commissioning and tests"),
      seconds("configure_timeout_seconds", "Configuration"),
      seconds("deploy_timeout_seconds", "Deploy"),
      seconds("hardware_sync_seed_timeout_seconds", "First hardware sync"),
      seconds("hardware_sync_health_timeout_seconds", "Healthy hardware sync"),
      seconds("agent_enrollment_timeout_seconds", "Enrollment of the agent"),
      seconds("release_timeout_seconds", "Release with erase"),
      seconds("power_off_timeout_seconds", "Power off"),
    ],
  },
];

export const FIELDS: readonly Field[] = GROUPS.flatMap(({ fields }) => fields);
