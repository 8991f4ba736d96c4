import { z } from "zod";
import { fact, ProvisionState } from "../provisioning/provision-state.ts";

/**
 * The record of a discovery. The hub writes the record before it sends the BMC any command, because the host may boot from the network after the
 * first command.
 */
export const Discovery = z.object({
  why: z.string(),
  triggered_at: z.iso.datetime(),
  /**
   * System ids that MAAS had before the host was powered off. A machine that MAAS had before cannot be the machine that the host's network boot
   * creates.
   */
  known: z.array(z.string()),
  /** When the hub first saw the host powered off for this discovery. `known` does not change after that moment. */
  off_at: fact(z.iso.datetime()),
  /** When the hub first saw the host powered on again. The hub claims no new machine for the host before that time. */
  booted_at: fact(z.iso.datetime()),
  /** For each machine that appeared in MAAS after the host was off: when the hub first saw the machine. */
  seen: z.record(z.string(), z.iso.datetime()),
});
export type Discovery = z.output<typeof Discovery>;

/**
 * The facts of an onboarding (lifecycle 4.5): those of provisioning, and those of finding the machine. The state holds paths of secrets, and never
 * secrets.
 */
export const OnboardState = ProvisionState.extend({
  maas_version: fact(z.string()),
  power_credentials_path: fact(z.string()),
  power_credentials_selector: fact(z.enum(["pxe_mac", "ipmi_ip", "hostname", "default"])),
  machine_created: fact(z.boolean()),
  /** The machine has failed its hardware tests, and `commission_node` is to test it again whatever its status is now. */
  commission_again: fact(z.boolean()),
  create_rejections: fact(z.number()),
  /** How often MAAS accepted a create request after which no usable machine existed. */
  create_unusable: fact(z.number()),
  discovery: fact(Discovery),
  /** What the hub saw of the host's power cycle since a person last continued the onboarding. */
  discovery_power: fact(z.object({ off_seen: z.boolean(), booted_at: z.iso.datetime().nullable() })),
});
export type OnboardState = z.output<typeof OnboardState>;
