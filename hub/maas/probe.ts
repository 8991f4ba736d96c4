import type { SiteProbe } from "../../shared/api/sites.ts";
import { hasBootImage, missingScripts } from "./boot-images.ts";
import { MaasError, type MaasPort, type MaasRack, type MaasScripts } from "./port.ts";
import { sameAddress } from "./power-address.ts";
import { secondsOf } from "./sync-interval.ts";

type Check = SiteProbe["checks"][number];

/** The features that a profile of a site requires of the site's MAAS. */
export interface ProbedProfile {
  readonly name: string;
  /** The image's series in the form that MAAS's deploy call takes, for example `ubuntu/noble`. */
  readonly series: string;
  readonly architecture: string;
  readonly pxeIface: string;
  readonly pxeVlanVid: number;
  readonly scripts: MaasScripts;
  /** The interval of hardware sync, or null if the profile does not require hardware sync. */
  readonly hardwareSyncSeconds: number | null;
}

interface ProbedSite {
  readonly profiles: readonly ProbedProfile[];
  /** The servers to which MAAS's DNS must forward names that it does not know. */
  readonly upstreamDnsServers: readonly string[];
}

/** The age in seconds above which MAAS refuses an OAuth timestamp; MAAS accepts any timestamp in the future (maas 1.3). */
const REFUSED_BEHIND_SECONDS = 300;
/** The largest difference, in seconds, between the clocks of hub and MAAS that network delay can explain. */
const SKEW_SECONDS = 30;
/**
 * A system id that no machine in MAAS has. For an unknown system id, MAAS gives an administrator an empty answer, and answers 403 to any other user.
 */
const NO_MACHINE = "none";

/**
 * The probe finds out whether the hub can work with a site's MAAS region and its token. MAAS answers `version/` without a token, so the probe of a
 * MAAS region proves the token by the call `whoami`, and by a read that only administrators may do (decision M1). After the check of the MAAS token,
 * the probe of a MAAS region checks racks, images, scripts and settings, because a fault in one of them would otherwise show only during a workflow.
 * A refused token or an unreachable region is a failed check of the probe with a reason, not an exception.
 */
export async function probeMaas(maas: MaasPort, { profiles, upstreamDnsServers }: ProbedSite): Promise<SiteProbe> {
  const probe: Probe = {
    maas_version: null,
    clock_ahead_seconds: null,
    username: null,
    is_superuser: null,
    rack_controllers: [],
    checks: [],
  };
  try {
    await lookAtRegion(maas, probe);
    if (!(await lookAtAccount(maas, probe))) return probe;
    const racks = await maas.rackControllers();
    probe.rack_controllers = racks.map(({ systemId, hostname }) => ({ system_id: systemId, hostname }));
    probe.checks.push(rackCheck(racks), ...networkChecks(racks, profiles));
    probe.checks.push(...(await imageChecks(maas, profiles)), ...(await scriptChecks(maas, profiles)));
    probe.checks.push(await eraseCheck(maas), await syncCheck(maas, profiles));
    probe.checks.push(dnsCheck(await maas.getConfig("upstream_dns"), upstreamDnsServers));
  } catch (error) {
    if (!(error instanceof MaasError)) throw error;
    probe.checks.push(check(error.code === "unauthorized" ? "token" : "reachable", "failed", error.message));
  }
  return probe;
}

type Probe = { -readonly [K in keyof SiteProbe]: SiteProbe[K] };

const check = (
  name: Check["name"],
  status: Check["status"],
  message: string,
  profile: string | null = null,
): Check => ({
  name,
  status,
  profile,
  message,
});

async function lookAtRegion(maas: MaasPort, probe: Probe): Promise<void> {
  probe.maas_version = (await maas.version()).version;
  probe.checks.push(check("reachable", "ok", `MAAS ${probe.maas_version} answers.`));
  probe.clock_ahead_seconds = await maas.clockAheadSeconds();
  probe.checks.push(clockCheck(probe.clock_ahead_seconds));
}

/** Checks the clocks before the token, because MAAS refuses every token if the hub's clock is far behind. */
function clockCheck(ahead: number | null): Check {
  if (ahead === null) return check("clock", "warning", "MAAS's answer has no date, so its clock cannot be compared.");
  if (Math.abs(ahead) < SKEW_SECONDS) return check("clock", "ok", "The clocks of MAAS and hub agree.");
  const apart = `MAAS's clock is ${Math.abs(ahead)} s ${ahead > 0 ? "ahead of" : "behind"} the hub's`;
  return ahead > REFUSED_BEHIND_SECONDS
    ? check("clock", "failed", `${apart}, so it refuses every request as expired. Set both by NTP.`)
    : check("clock", "warning", `${apart}. Set both by NTP: beyond ${REFUSED_BEHIND_SECONDS} s MAAS refuses requests.`);
}

async function lookAtAccount(maas: MaasPort, probe: Probe): Promise<boolean> {
  const who = await maas.whoami();
  probe.username = who.username;
  probe.is_superuser = who.isSuperuser;
  probe.checks.push(check("token", "ok", `The token belongs to ${who.username}.`));
  const may = who.isSuperuser && (await mayReadPower(maas));
  probe.checks.push(
    may
      ? check("rights", "ok", "The user is an administrator.")
      : check(
          "rights",
          "failed",
          `${who.username} is no administrator; commissioning and storage need one. Use a token of an administrator.`,
        ),
  );
  return may;
}

const mayReadPower = (maas: MaasPort): Promise<boolean> =>
  maas.powerAddresses([NO_MACHINE]).then(
    () => true,
    (error: unknown) => {
      if (error instanceof MaasError && error.code === "forbidden") return false;
      throw error;
    },
  );

const rackCheck = (racks: readonly MaasRack[]): Check =>
  racks.length > 0
    ? check("racks", "ok", `Rack controllers: ${racks.length}.`)
    : check("racks", "failed", "No rack controller: nothing can be powered or booted. Connect one.");

/** Checks the racks' networks, because hosts boot from the rack's interface on the PXE VLAN, where MAAS serves DHCP (lifecycle 3.1). */
function networkChecks(racks: readonly MaasRack[], profiles: readonly ProbedProfile[]): Check[] {
  const nics = racks.flatMap((rack) => rack.interfaces);
  return profiles.map(({ name, pxeIface, pxeVlanVid }) => {
    const place = `interface ${pxeIface} on VLAN ${pxeVlanVid}`;
    const found = nics.filter((nic) => nic.name === pxeIface && nic.vlanVid === pxeVlanVid);
    if (found.length === 0) {
      const advice = "Hosts would not boot over PXE; correct the site's pxe_iface and pxe_vlan_vid, or the rack.";
      return check("pxe_network", "warning", `No rack controller has an ${place}. ${advice}`, name);
    }
    if (found.some((nic) => nic.dhcpOn))
      return check("pxe_network", "ok", `A rack controller serves hosts on ${place}.`, name);
    return check("pxe_network", "warning", `MAAS serves no DHCP on ${place}: hosts would not boot over PXE.`, name);
  });
}

async function imageChecks(maas: MaasPort, profiles: readonly ProbedProfile[]): Promise<Check[]> {
  const images = await maas.bootResources();
  return profiles.map((profile) => {
    const what = `${profile.series} for ${profile.architecture.split("/", 1)[0]}`;
    return hasBootImage(images, profile)
      ? check("boot_image", "ok", `MAAS has ${what}.`, profile.name)
      : check(
          "boot_image",
          "warning",
          `MAAS has no boot image ${what}: onboardings with profile ${profile.name} will be refused. Import the image, or change the profile.`,
          profile.name,
        );
  });
}

async function scriptChecks(maas: MaasPort, profiles: readonly ProbedProfile[]): Promise<Check[]> {
  const naming = profiles.filter(({ scripts }) => scripts.commissioning.length + scripts.testing.length > 0);
  if (naming.length === 0) return [];
  const known = { commissioning: await maas.scripts("commissioning"), testing: await maas.scripts("testing") };
  return naming.map(({ name, scripts }) => {
    const missing = missingScripts(known, scripts);
    return missing.length === 0
      ? check("scripts", "ok", "MAAS has the scripts that the profile names.", name)
      : check(
          "scripts",
          "warning",
          `MAAS has no ${missing.join(", ")}: onboardings with profile ${name} will be refused. Upload the scripts, or change the profile.`,
          name,
        );
  });
}

/** If the MAAS region's setting makes every release erase disks, the erase happens whether the hub requests it or not (maas 2.9). */
async function eraseCheck(maas: MaasPort): Promise<Check> {
  const erases = (await maas.getConfig("enable_disk_erasing_on_release")) === true;
  return erases
    ? check(
        "enable_disk_erasing_on_release",
        "warning",
        "Every release erases the disks, even if no erasure is requested, and that takes hours for some disks. From MAAS 3.5 on, the region's settings then also replace the kind of erase that an operation asks for, so its erase may fail with erase_fell_back or erase_unproven. Turn the setting off.",
      )
    : check("enable_disk_erasing_on_release", "ok", "Releases erase only when asked to.");
}

/**
 * MAAS has one interval of hardware sync for all hosts of a region (maas 4.2). The hub sets the region's interval of hardware sync to that of the
 * default profile. For a profile with an interval of its own, the agents set the interval of hardware sync on the profile's hosts.
 */
async function syncCheck(maas: MaasPort, profiles: readonly ProbedProfile[]): Promise<Check> {
  const value = await maas.getConfig("hardware_sync_interval");
  const seconds = typeof value === "string" ? secondsOf(value) : null;
  if (seconds === null)
    return check("hardware_sync_interval", "warning", "MAAS does not say how often hosts sync their hardware.");
  const differ = profiles.filter(
    ({ hardwareSyncSeconds }) => hardwareSyncSeconds !== null && hardwareSyncSeconds !== seconds,
  );
  return differ.length === 0
    ? check("hardware_sync_interval", "ok", `Hosts sync their hardware every ${seconds} s.`)
    : check(
        "hardware_sync_interval",
        "warning",
        `MAAS lets hosts sync their hardware every ${seconds} s, and ${differ.map(({ name, hardwareSyncSeconds }) => `profile ${name} expects ${hardwareSyncSeconds} s`).join(", ")}. The hub sets MAAS's hardware_sync_interval to the default profile's within minutes; hosts of other profiles sync at the intervals of these profiles, so MAAS's own view of their sync differs.`,
      );
}

/**
 * A host that MAAS deployed asks MAAS's DNS for every name. MAAS forwards names that MAAS does not know only to the servers in the setting
 * `upstream_dns`. The value of `upstream_dns` is one string with blanks, or null if nobody has set it (maas 2.14). Servers in `upstream_dns` that the
 * site does not require are no fault.
 */
export function dnsCheck(setting: unknown, wanted: readonly string[]): Check {
  const set = typeof setting === "string" ? setting.split(/[\s,]+/).filter((server) => server !== "") : [];
  const missing = wanted.filter((server) => !set.some((one) => sameAddress(one, server)));
  if (missing.length === 0) return check("upstream_dns", "ok", `MAAS's DNS forwards names to ${set.join(", ")}.`);
  const advice = `Set upstream_dns in MAAS to "${[...set, ...missing].join(" ")}", or the site's upstream_dns_servers to what is right.`;
  return set.length === 0
    ? check(
        "upstream_dns",
        "warning",
        `MAAS's DNS forwards names to no server, so hosts resolve outside names only if MAAS itself reaches the Internet's root servers. ${advice}`,
      )
    : check(
        "upstream_dns",
        "warning",
        `MAAS's DNS forwards names to ${set.join(", ")}, but not to ${missing.join(", ")} as the site requires. ${advice}`,
      );
}
