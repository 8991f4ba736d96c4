/** The fields of a node that the drawing of a rack needs. */
export interface Located {
  readonly id: string;
  readonly status: string;
  readonly location: { readonly room: string | null; readonly rack: string | null; readonly unit: number | null };
}

/** A part of a rack, listed from top to bottom: a unit with its nodes, or a run of units in which the list has no node. */
export type Slot<Node> =
  | { readonly kind: "unit"; readonly unit: number; readonly nodes: readonly Node[]; readonly isContested: boolean }
  | { readonly kind: "gap"; readonly top: number; readonly bottom: number };

export interface Rack<Node> {
  readonly key: string;
  readonly room: string | null;
  readonly name: string;
  /**
   * The number of height units. The API knows only where nodes are and not how high racks are, so each rack is drawn at least as high as a usual
   * rack.
   */
  readonly height: number;
  readonly nodes: number;
  readonly slots: readonly Slot<Node>[];
  /** The numbers of the first and last row of the node list that are in this rack. */
  readonly first: number;
  readonly last: number;
}

const USUAL_HEIGHT = 42;

/** A deleted node no longer occupies its rack unit, so it is drawn beside the node that replaced it. */
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
 * Leaves out nodes without a place. If a node moved between the loading of two pages, both pages contain the node, and the page that the hub sent
 * last has its present place.
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

/**
 * Arranges nodes in racks, in the order in which the node list names the racks. For each row of the node list, `answeredAt` is the time at which the
 * hub sent the row.
 */
export function racksOf<Node extends Located>(rows: readonly Node[], answeredAt: readonly number[]): Rack<Node>[] {
  const racks = Map.groupBy(placedOf(rows, answeredAt), ({ room, rack }) => JSON.stringify([room, rack]));
  return [...racks].map(([key, placed]) => rackOf(key, placed));
}
