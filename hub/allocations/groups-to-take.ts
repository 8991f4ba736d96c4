import type { NodeId } from "../../shared/ids.ts";

export interface FreeNode {
  readonly id: NodeId;
  readonly room: string | null;
  readonly rack: string | null;
}

/**
 * Returns the groups of free nodes from which a batch of `count` nodes may be taken, the best group first. Without `sameRack` all nodes are one
 * group. With `sameRack` each rack is a group of its own; among the racks with enough free nodes, the one with the fewest comes first, so that whole
 * racks stay free for larger batches. Racks in two different rooms may have the same name.
 */
export function groupsToTake(free: readonly FreeNode[], count: number, sameRack: boolean): readonly FreeNode[][] {
  const all = sameRack ? racksOf(free) : [[...free]];
  return all.filter((group) => group.length >= count).toSorted((a, b) => a.length - b.length);
}

function racksOf(free: readonly FreeNode[]): FreeNode[][] {
  const racks = new Map<string, FreeNode[]>();
  for (const node of free) {
    if (node.rack === null) continue;
    const place = JSON.stringify([node.room, node.rack]);
    racks.set(place, [...(racks.get(place) ?? []), node]);
  }
  return [...racks.values()];
}
