import { z } from "zod";
import { RESIDUE_ITEM_NAMES, type ResidueItem } from "./items.ts";

/** The largest number of entries of one item. The list of installed packages is the longest. */
export const MOST_ENTRIES = 3_000;
/** The largest length of an entry's name, in characters. The agent escapes characters that are not printable ASCII. */
export const LONGEST_NAME = 200;
/** The largest size of one item as JSON. The list of installed packages may be larger. */
export const MAX_ITEM_BYTES = 32 * 1024;
export const MAX_PACKAGES_BYTES = 160 * 1024;
/** The largest size of a whole snapshot as JSON, which leaves room in a frame (`MAX_FRAME_BYTES`). */
export const MAX_SNAPSHOT_BYTES = 320 * 1024;
const LONGEST_REASON = 300;

/** The first 96 bits of a keyed SHA-256, in base64url. The host keeps the key, so a digest tells nothing about a text that could be guessed. */
const Digest = z.string().regex(/^[A-Za-z0-9_-]{16}$/);
export const ResidueEntry = z.strictObject({ name: z.string().min(1).max(LONGEST_NAME), digest: Digest });
export type ResidueEntry = z.output<typeof ResidueEntry>;

/** What the agent read for an item: all entries, or the reason why they are not known. A list of entries is never cut. */
export const ResidueReading = z.union([
  z.strictObject({ entries: z.array(ResidueEntry).max(MOST_ENTRIES) }),
  z.strictObject({ unreadable: z.string().min(1).max(LONGEST_REASON) }),
]);
export type ResidueReading = z.output<typeof ResidueReading>;

/** The state of a host, item by item. An item may be missing, because an older agent does not know it or because it needs a tenant. */
export const ResidueSnapshot = z.partialRecord(
  z.enum(RESIDUE_ITEM_NAMES as [ResidueItem, ...ResidueItem[]]),
  ResidueReading,
);
export type ResidueSnapshot = z.output<typeof ResidueSnapshot>;

/** Shortens a reason to the length that the schema allows. */
export const unreadableBecause = (reason: string): ResidueReading => ({
  unreadable: reason.slice(0, LONGEST_REASON) || "no reason was given",
});

/** The tenant whose traces a snapshot looks for. */
export const ResidueTenant = z.strictObject({
  login_user: z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/),
  uid: z.int().min(1000).max(4_294_967_294),
});
export type ResidueTenant = z.output<typeof ResidueTenant>;
