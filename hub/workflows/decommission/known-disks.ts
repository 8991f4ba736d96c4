import { disksOf } from "../../../shared/residue/disk-names.ts";
import { ResidueSnapshot } from "../../../shared/residue/snapshot.ts";
import { readBaseline } from "../../db/queries/node-baselines.ts";
import { readInventory } from "../../db/queries/node-inventories.ts";
import { disksBeforeReinstall } from "../../db/queries/reinstalls.ts";
import type { Node } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";

/** The disks of a host that the hub knows from other sources than the host's present state. */
export interface KnownDisks {
  /** The serial numbers of the disks in the host's inventory and in the node's baseline, the record of the clean host. */
  readonly serials: ReadonlySet<string>;
  /** The sizes of the disks in the host's inventory, in bytes, by serial number. */
  readonly bytes: ReadonlyMap<string, number>;
}

/**
 * Returns the serial numbers of the disks in the node's baseline, the record of the clean host from before its first tenant. After a reinstall the
 * node's baseline is newer than its tenant, so the result also contains the disks of the baselines from before the reinstall.
 */
export async function baselineDisks(
  db: Db | Tx,
  { id, generation }: Pick<Node, "id" | "generation">,
): Promise<ReadonlySet<string>> {
  const baseline = ResidueSnapshot.safeParse((await readBaseline(db, id, generation))?.baseline.snapshot);
  return new Set([...(disksOf(baseline.data ?? null) ?? []), ...(await disksBeforeReinstall(db, id))]);
}

/**
 * Reads which disks the host has from its inventory and from the node's baseline, the record of the clean host. A node's baseline is from before its
 * first tenant, so the hub knows even a disk that a tenant hides.
 */
export async function readKnownDisks(db: Db | Tx, node: Pick<Node, "id" | "generation">): Promise<KnownDisks> {
  const listed = ((await readInventory(db, node.id))?.disks ?? []).map(({ serial, bytes }) => ({
    serial: serial.trim(),
    bytes,
  }));
  const named = listed.filter(({ serial }) => serial !== "");
  return {
    serials: new Set([...(await baselineDisks(db, node)), ...named.map(({ serial }) => serial)]),
    bytes: new Map(named.filter(({ bytes }) => bytes > 0).map(({ serial, bytes }) => [serial, bytes])),
  };
}
