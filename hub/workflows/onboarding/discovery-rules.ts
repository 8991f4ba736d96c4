import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import type { MaasErrorCode } from "../../maas/port.ts";
import { isAddress } from "../../maas/power-address.ts";

/** By the facts in `CreateFault`, `afterCreate` decides how an onboarding continues after MAAS returned no machine. */
export interface CreateFault {
  readonly code: MaasErrorCode;
  /** The HTTP status of MAAS's error; null if MAAS accepted the create request but returned no machine. */
  readonly httpStatus: number | null;
  readonly fields: readonly string[];
  /**
   * The number of the onboarding's attempts in which MAAS refused the machine's name. The field `unusable` counts create requests that MAAS accepted
   * without returning a machine.
   */
  readonly nameRefusals: number;
  readonly unusable: number;
}
export type AfterCreate = "look_again" | "discover" | "give_up";

/**
 * After a create request that returned no machine, the stage searches for the machine at most `MOST_LOOKS` times. Another client of MAAS may have
 * created the host's machine, or MAAS may have created the machine without saying so.
 */
const MOST_LOOKS = 3;
/** The fields of a create request that MAAS can learn from a host that boots from the network: its interfaces and its BMC. */
const BROUGHT_BY_DISCOVERY = /^(mac_addresses|power_type|power_parameters)/;

/**
 * A discovery begins only if MAAS refuses data that a discovery would provide, or if MAAS accepts the create request but returns no machine. If MAAS
 * is unavailable or has no rack controller, the engine waits or retries. If MAAS refuses other data of a create request, such as the machine's
 * architecture, the stage fails.
 */
export function afterCreate({ code, httpStatus, fields, nameRefusals, unusable }: CreateFault): AfterCreate {
  if (code === "rejected_input") {
    if (fields.includes("hostname")) return nameRefusals < MOST_LOOKS ? "look_again" : "give_up";
    return fields.length > 0 && fields.every((field) => BROUGHT_BY_DISCOVERY.test(field)) ? "discover" : "give_up";
  }
  if (code === "bad_answer" && httpStatus === null) return unusable < MOST_LOOKS ? "look_again" : "discover";
  return "give_up";
}

/** A machine that appeared in MAAS after the host's power-off for its network boot, and that no other onboarding holds. */
export interface Newcomer {
  readonly systemId: string;
  /** The machine's status in MAAS; null if Muster cannot parse MAAS's answer about the machine. */
  readonly status: number | null;
  readonly bmc: string;
  readonly seenSeconds: number;
}

export type DiscoveryVerdict =
  | { readonly kind: "nothing_yet" }
  | { readonly kind: "settling"; readonly systemIds: readonly string[] }
  | { readonly kind: "claim"; readonly systemId: string }
  | { readonly kind: "shared"; readonly systemId: string }
  | { readonly kind: "ambiguous"; readonly newcomers: readonly Newcomer[] };

/** The hub waits `SETTLE_SECONDS` for MAAS to learn a new machine's BMC from the host. */
export const SETTLE_SECONDS = 120;

/**
 * Judges the machines that appeared in MAAS after a host's boot from the network, if neither name, BMC nor MAC address has identified the host
 * (lifecycle 4.16, rule 4). An onboarding takes a new machine only if exactly one new machine has appeared in MAAS. A machine with another BMC
 * address than the requested host's is another host. If the BMC of a new machine has a name and not an address, the machine may be the requested host
 * or another host. The argument `rivals` counts the other onboardings of the site that search for their hosts. While several onboardings of a site
 * search for hosts, each waits until MAAS knows the new machine's BMC or a person decides.
 */
export function judgeNewcomers(newcomers: readonly Newcomer[], rivals: number): DiscoveryVerdict {
  const fit = newcomers.filter(
    ({ status, bmc }) => !isAddress(bmc) && (status === null || status <= MAAS_STATUS.commissioning),
  );
  const unsettled = fit.filter(
    ({ status, seenSeconds }) =>
      status === MAAS_STATUS.commissioning || (status === MAAS_STATUS.new && seenSeconds < SETTLE_SECONDS),
  );
  if (unsettled.length > 0) return { kind: "settling", systemIds: unsettled.map(({ systemId }) => systemId) };
  const [sole, ...others] = fit;
  if (sole === undefined) return { kind: "nothing_yet" };
  if (others.length > 0 || sole.status === null || sole.bmc !== "") return { kind: "ambiguous", newcomers: fit };
  return rivals > 0 ? { kind: "shared", systemId: sole.systemId } : { kind: "claim", systemId: sole.systemId };
}

/** The power of the host during a discovery, from the first observation to the boot. */
export interface PowerCycle {
  /** True if the hub has observed that the host is off since the onboarding was last continued, so that the hub switches the host off only once. */
  readonly offSeen: boolean;
  readonly power: "on" | "off" | "changing";
}
export type PowerStep = "wait" | "switch_off" | "note_off" | "boot" | "booted";

/**
 * Decides the next step of a power cycle from an observation of the host's power. The hub switches off only a host that is on and that the hub has
 * not yet observed to be off. The hub boots only a host that is off and that the hub has recorded as off. The hub never repeats a power cycle, even
 * if a hub dies between two steps or the BMC's answer is lost.
 */
export function nextPowerStep({ offSeen, power }: PowerCycle): PowerStep {
  if (power === "changing") return "wait";
  if (!offSeen) return power === "on" ? "switch_off" : "note_off";
  return power === "off" ? "boot" : "booted";
}
