import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import type { MaasErrorCode } from "../../maas/port.ts";
import { isAddress } from "../../maas/power-address.ts";

/** What a create that gave no machine says of going on, as a function of values. */
export interface CreateFault {
  readonly code: MaasErrorCode;
  /** Null where MAAS took the request and what it answered is no machine. */
  readonly httpStatus: number | null;
  readonly fields: readonly string[];
  /** How often MAAS has refused the name, and how often it took a create without giving a machine, before this time. */
  readonly nameRefusals: number;
  readonly unusable: number;
}
export type AfterCreate = "look_again" | "discover" | "give_up";

/** Another client creates the same machine, or the answer says nothing: a search will find the machine, but the stage does not search for ever. */
const MOST_LOOKS = 3;
/** Data that a machine reports itself when it boots from the network: its interfaces, and after them any power type. */
const BROUGHT_BY_DISCOVERY = /^(mac_addresses|power_type|power_parameters)/;

/**
 * Only an answer of MAAS that leaves no machine leads to a discovery: MAAS refuses data that a discovery provides, or it accepts the create and no machine
 * appears. If MAAS is unavailable, has an error or has no rack, the stage waits. A request that a discovery would not correct fails.
 */
export function afterCreate({ code, httpStatus, fields, nameRefusals, unusable }: CreateFault): AfterCreate {
  if (code === "rejected_input") {
    if (fields.includes("hostname")) return nameRefusals < MOST_LOOKS ? "look_again" : "give_up";
    return fields.length > 0 && fields.every((field) => BROUGHT_BY_DISCOVERY.test(field)) ? "discover" : "give_up";
  }
  if (code === "bad_answer" && httpStatus === null) return unusable < MOST_LOOKS ? "look_again" : "discover";
  return "give_up";
}

/** A machine that was not in MAAS before the host was off for its network boot, and that no other onboarding holds. */
export interface Newcomer {
  readonly systemId: string;
  /** Null where MAAS's answer cannot be read. */
  readonly status: number | null;
  /** The BMC by MAAS, "" if it knows none. */
  readonly bmc: string;
  readonly seenSeconds: number;
}

export type DiscoveryVerdict =
  | { readonly kind: "nothing_yet" }
  | { readonly kind: "settling"; readonly systemIds: readonly string[] }
  | { readonly kind: "claim"; readonly systemId: string }
  | { readonly kind: "shared"; readonly systemId: string }
  | { readonly kind: "ambiguous"; readonly newcomers: readonly Newcomer[] };

/** How long the hub waits for MAAS to learn a new machine's BMC from the host itself. */
export const SETTLE_SECONDS = 120;

/**
 * Rule 4 of lifecycle 4.16, for a host that neither name, BMC nor MAC address has found: exactly one new machine is claimed. One that MAAS knows by
 * another BMC is another host; a BMC that it knows by a name may be either. While another onboarding of the site looks for its host as well, one new
 * machine may be that one's (`rivals`), so nobody takes it: both wait until MAAS knows the BMC, or a person says.
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

/** What is known of the host's power, between the first look and the boot. */
export interface PowerCycle {
  /** Seen off since the onboarding was taken up: from then on nothing switches it off again. */
  readonly offSeen: boolean;
  readonly power: "on" | "off" | "changing";
}
export type PowerStep = "wait" | "switch_off" | "note_off" | "boot" | "booted";

/**
 * One step of a power-cycle, each after a look. Off is asked for only while the host is on and was not seen off; on only while it is off and that is
 * on record. So a hub that dies between any two steps, or an answer that nobody heard, never cycles the host twice.
 */
export function nextPowerStep({ offSeen, power }: PowerCycle): PowerStep {
  if (power === "changing") return "wait";
  if (!offSeen) return power === "on" ? "switch_off" : "note_off";
  return power === "off" ? "boot" : "booted";
}
