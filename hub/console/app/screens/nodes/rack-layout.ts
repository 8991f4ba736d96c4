/** What the drawing of a rack needs to know about a node of the list. */
export interface Located {
  readonly id: string;
  readonly status: string;
  readonly location: { readonly room: string | null; readonly rack: string | null; readonly unit: number | null };
}

/** A part of a rack, from top to bottom: a unit with its nodes, or a run of units for which the list has no node. */
export type Slot<Node> =
  | { readonly kind: "unit"; readonly unit: number; readonly nodes: readonly Node[]; readonly isContested: boolean }
  | { readonly kind: "gap"; readonly top: number; readonly bottom: number };

export interface Rack<Node> {
  readonly key: string;
  readonly room: string | null;
  readonly name: string;
  /** The number of height units. The API knows only the places of nodes, so a rack is at least as high as the usual one. */
  readonly height: number;
  readonly nodes: number;
  readonly slots: readonly Slot<Node>[];
  /** The first and the last row of the list that is in this rack. */
  readonly first: number;
  readonly last: number;
}

const USUAL_HEIGHT = 42;

/** A deleted node has left its unit, so it is shown beside its successor and claims nothing. */
const claims = ({ status }: Located): boolean => status !== "deleted";

function slotsOf<Node extends Located>(units: ReadonlyMap<number, readonly Node[]>, height: number): Slot<Node>[] {
  const slots: Slot<Node>[] = [];
  let above = height;
  const close = (bottom: number): void => {
    if (above >= bottom) slots.push({ kind: "gap", top: above, bottom });
  };
  for (const [unit, nodes] of [...units].sort(([a], [b]) => b - a)) {
    close(unit + 1);
    slots.push({ kind: "unit", unit, nodes, isContested: nodes.filter(claims).length > 1 });
    above = unit - 1;
  }
  close(1);
  return slots;
}

interface Placed<Node> {
  readonly node: Node;
  readonly row: number;
  readonly room: string | null;
  readonly rack: string;
  readonly unit: number;
}

/**
 * Leaves out nodes without a place. Two pages have a node that has moved between them, and the page that was answered last knows where the node is now.
 */
function placedOf<Node extends Located>(rows: readonly Node[], answeredAt: readonly number[]): Placed<Node>[] {
  const newest = new Map<string, number>();
  rows.forEach(({ id }, row) => {
    const known = newest.get(id);
    if (known === undefined || (answeredAt[row] ?? 0) > (answeredAt[known] ?? 0)) newest.set(id, row);
  });
  return rows.flatMap((node, row) => {
    const { room, rack, unit } = node.location;
    if (rack === null || unit === null || newest.get(node.id) !== row) return [];
    return [{ node, row, room, rack, unit }];
  });
}

function rackOf<Node extends Located>(key: string, placed: readonly Placed<Node>[]): Rack<Node> {
  const units = Map.groupBy(placed, ({ unit }) => unit);
  const height = Math.max(USUAL_HEIGHT, ...units.keys());
  const rows = placed.map(({ row }) => row);
  return {
    key,
    room: placed[0]?.room ?? null,
    name: placed[0]?.rack ?? "",
    height,
    nodes: placed.length,
    slots: slotsOf(new Map([...units].map(([unit, here]) => [unit, here.map(({ node }) => node)])), height),
    first: Math.min(...rows),
    last: Math.max(...rows),
  };
}

/** Arranges nodes in racks, in the order in which the list names the racks. `answeredAt` says of each row when the hub answered with it. */
export function racksOf<Node extends Located>(rows: readonly Node[], answeredAt: readonly number[]): Rack<Node>[] {
  const racks = Map.groupBy(placedOf(rows, answeredAt), ({ room, rack }) => JSON.stringify([room, rack]));
  return [...racks].map(([key, placed]) => rackOf(key, placed));
}
