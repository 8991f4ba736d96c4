import { z } from "zod";

/** What the agent saw of its host; sizes in bytes. Facts only: what it means for the SKU is decided by the hub. */
export const Inventory = z.strictObject({
  hostname: z.string().max(253),
  boot_id: z.string().max(64),
  system: z.strictObject({ manufacturer: z.string(), model: z.string(), uuid: z.string() }),
  os: z.strictObject({ distro: z.string(), release: z.string(), kernel: z.string(), arch: z.string() }),
  cpu: z.strictObject({ model: z.string(), cores: z.int(), sockets: z.int() }),
  memory_bytes: z.number(),
  disks: z
    .array(
      z.strictObject({ name: z.string(), model: z.string(), serial: z.string(), bytes: z.number(), kind: z.string() }),
    )
    .max(256),
  interfaces: z
    .array(
      z.strictObject({
        name: z.string(),
        mac: z.string(),
        ipv4: z.array(z.string()),
        speed_mbps: z.number().nullable(),
      }),
    )
    .max(256),
  gpus: z
    .array(
      z.strictObject({ vendor: z.string(), model: z.string(), bus: z.string(), memory_bytes: z.number().nullable() }),
    )
    .max(64),
});
export type Inventory = z.output<typeof Inventory>;
