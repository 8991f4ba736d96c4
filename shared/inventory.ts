import { z } from "zod";
import { Int4 } from "./int4.ts";

/** The agent cuts each text of its inventory to 200 characters, the limit in the inventory's schema. */
const Text = z.string().max(200);

/**
 * The hub compares the inventory of a host, whose sizes are in bytes, with the node's SKU. An agent of a newer version may add fields to its
 * inventory, which an older hub ignores.
 */
export const Inventory = z.object({
  hostname: z.string().max(253),
  boot_id: z.string().max(64),
  /**
   * The uptime of the host in seconds when the agent began to read the inventory, which orders the inventories of one boot. Agents before 2026-11-29 do
   * not send it.
   */
  read_at_uptime: z.number().nonnegative().optional(),
  system: z.strictObject({ manufacturer: Text, model: Text, uuid: Text }),
  os: z.strictObject({ distro: Text, release: Text, kernel: Text, arch: Text }),
  cpu: z.strictObject({ model: Text, cores: Int4, sockets: Int4 }),
  memory_bytes: z.number(),
  disks: z.array(z.object({ name: Text, model: Text, serial: Text, bytes: z.number(), kind: Text })).max(256),
  interfaces: z
    .array(
      z.object({
        name: Text,
        mac: Text,
        ipv4: z.array(Text).max(16),
        speed_mbps: z.number().nullable(),
      }),
    )
    .max(256),
  gpus: z
    .array(
      z.object({
        vendor: Text,
        model: Text,
        bus: Text,
        memory_bytes: z.number().nullable(),
        /** An identifier that this GPU keeps for as long as it exists; absent if the driver does not tell it. */
        serial: Text.optional(),
      }),
    )
    .max(64),
  /** True if the host shows its PCI bus, so that the list of GPUs is complete. Agents before 2026-11-29 do not send it. */
  gpus_counted: z.boolean().optional(),
  /** The parts of the inventory that are empty because the agent could not read them; absent if the agent has read all parts. */
  unread: z
    .array(z.enum(["disks", "interfaces", "gpus"]))
    .max(3)
    .optional(),
});
export type Inventory = z.output<typeof Inventory>;
