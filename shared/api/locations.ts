import { z } from "zod";
import { NodeId, SiteId } from "../ids.ts";
import { countsFailures } from "./extensions.ts";
import { Hostname } from "./values.ts";

/** The name of a room or a rack, as the labels of a site have it. */
const PlaceName = z
  .string()
  .regex(
    /^[A-Za-z0-9]([A-Za-z0-9 ._/-]{0,61}[A-Za-z0-9])?$/,
    "must begin and end with a letter or digit, and have letters, digits, spaces, dots, slashes, dashes and underscores between, 63 characters at most",
  );
export const Room = PlaceName;
export const Rack = PlaceName;
/** The height unit of a host in its rack, counted from 1; the highest racks that are sold have fewer than 100 units. */
const Unit = z.int().min(1).max(100);

/**
 * The number of a host in the inventory of its owner, as the label on the host has it. A sanitization certificate of NIST SP 800-88 calls the asset
 * tag the property number.
 */
export const AssetTag = z
  .string()
  .regex(
    /^[A-Za-z0-9]([A-Za-z0-9 ._/:#-]{0,62}[A-Za-z0-9])?$/,
    "must begin and end with a letter or digit, and have letters, digits, spaces and the characters . _ / : # - between, 64 characters at most",
  );

/** Where a host stands at its site. A field of the location is null if no operator has entered it. */
export const NodeLocation = z.strictObject({
  room: z.string().nullable(),
  rack: z.string().nullable(),
  unit: z.int().nullable(),
});
export type NodeLocation = z.output<typeof NodeLocation>;

const placeFields = {
  room: Room.nullable().default(null),
  rack: Rack.nullable().default(null),
  unit: Unit.nullable().default(null),
};

function unitNeedsRack({ rack, unit }: NodeLocation, ctx: z.RefinementCtx): void {
  if (unit === null || rack !== null) return;
  ctx.addIssue({ code: "custom", path: ["unit"], message: "needs a rack, because a unit is a place in a rack" });
}

/** A location in a request, in which an absent field means that nobody knows the room, rack or unit. */
export const LocationGiven = z
  .strictObject(placeFields)
  .superRefine(unitNeedsRack)
  .describe("Where the host stands: room, rack and unit, each of them optional");
export type LocationGiven = z.output<typeof LocationGiven>;

export const NOWHERE: NodeLocation = { room: null, rack: null, unit: null };

/** The largest number of hosts whose locations one request may set. */
const MOST_HOSTS = 1000;

/** The places (room, rack, unit) of many hosts of one site, each host named by its hostname. */
export const LocationsSet = z
  .strictObject({
    site_id: SiteId,
    items: z
      .array(
        z
          .strictObject({
            hostname: Hostname,
            ...placeFields,
            asset_tag: AssetTag.nullable()
              .describe("null removes the asset tag; without it the host keeps its asset tag")
              .optional(),
          })
          .superRefine(unitNeedsRack),
      )
      .min(1)
      .max(MOST_HOSTS)
      .describe("The hosts with their locations; a location replaces the whole earlier location of the host"),
  })
  .superRefine(({ items }, ctx) => {
    const names = items.map(({ hostname }) => hostname);
    for (const [index, name] of names.entries())
      if (names.indexOf(name) < index)
        ctx.addIssue({ code: "custom", path: ["items", index, "hostname"], message: "is named twice" });
  });

export const LocationsWritten = z.strictObject({
  set: z.int(),
  refused: z.int().meta(countsFailures),
  results: z.array(
    z.strictObject({
      hostname: Hostname,
      /** `node_id` is null if the site has no node with the given hostname. */
      node_id: NodeId.nullable(),
      refused_because: z.string().nullable(),
    }),
  ),
});
