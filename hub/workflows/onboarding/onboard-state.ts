import { z } from "zod";
import { fact, ProvisionState } from "../provisioning/provision-state.ts";

/**
 * The record of a discovery, in which the host boots from the network so that MAAS creates the host's machine. The hub stores the record of a
 * discovery before any command to the BMC, because the host may boot after the first command.
 */
export const Discovery = z.object({
  why: z.string(),
  triggered_at: z.iso.datetime(),
  /** The system ids of the machines that MAAS had before the host was off, so that the hub recognizes new machines. */
  known: z.array(z.string()),
  /**
   * The time in the discovery when the hub first observed that the host was off; after `off_at`, the hub adds no machine to `known`, its list of old
   * machines.
   */
  off_at: fact(z.iso.datetime()),
  /** The time when the hub first observed that the host was on after its power-off; before `booted_at`, the hub takes no new machine for the host. */
  booted_at: fact(z.iso.datetime()),
  /** For each machine that appeared in MAAS after the host was off, the time when the hub first saw the machine. */
  seen: z.record(z.string(), z.iso.datetime()),
});
export type Discovery = z.output<typeof Discovery>;

/**
 * The facts of an onboarding are the facts of provisioning and the facts about finding the machine (lifecycle 4.5). The state of an onboarding holds
 * the paths of secrets, and never the secrets.
 */
export const OnboardState = ProvisionState.extend({
  maas_version: fact(z.string()),
  power_credentials_path: fact(z.string()),
  power_credentials_selector: fact(z.enum(["pxe_mac", "ipmi_ip", "hostname", "default"])),
  machine_created: fact(z.boolean()),
  /** True if the machine has failed its hardware tests, so that `commission_node` must test the machine whatever its status is now. */
  commission_again: fact(z.boolean()),
  create_rejections: fact(z.number()),
  /** The number of create requests that MAAS accepted without a usable machine afterwards. */
  create_unusable: fact(z.number()),
  discovery: fact(Discovery),
  /** The observations of the host's power since a person last continued the onboarding. */
  discovery_power: fact(z.object({ off_seen: z.boolean(), booted_at: z.iso.datetime().nullable() })),
});
export type OnboardState = z.output<typeof OnboardState>;
