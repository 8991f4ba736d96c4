import { z } from "zod";
import { RESIDUE_ITEM_NAMES, type ResidueItem } from "./items.ts";

/** The largest number of entries of a residue item in a snapshot. The list of installed packages is the residue item with the most entries. */
export const MOST_ENTRIES = 3_000;
/**
 * The largest number of characters in the name of an entry in a residue snapshot. In the name of an entry, the agent escapes characters that are not
 * printable ASCII.
 */
export const LONGEST_NAME = 200;
/** The largest size of one residue item as JSON, in bytes. The list of installed packages may be larger than the other residue items. */
export const MAX_ITEM_BYTES = 32 * 1024;
export const MAX_PACKAGES_BYTES = 160 * 1024;
/** The largest size of a whole residue snapshot as JSON, which leaves room in a frame of `MAX_FRAME_BYTES`. */
export const MAX_SNAPSHOT_BYTES = 320 * 1024;
const LONGEST_REASON = 300;

/**
 * The digest of an entry in a residue snapshot: the first 96 bits of a keyed SHA-256, in base64url. The key of an entry's digest never leaves the
 * host, so nobody else can test a guess about the digested text.
 */
const Digest = z.string().regex(/^[A-Za-z0-9_-]{16}$/);
export const ResidueEntry = z.strictObject({ name: z.string().min(1).max(LONGEST_NAME), digest: Digest });
export type ResidueEntry = z.output<typeof ResidueEntry>;

/** For a residue item, the agent tells either all entries or the reason why it could not read them. */
export const ResidueReading = z.union([
  z.strictObject({ entries: z.array(ResidueEntry).max(MOST_ENTRIES) }),
  z.strictObject({ unreadable: z.string().min(1).max(LONGEST_REASON) }),
]);
export type ResidueReading = z.output<typeof ResidueReading>;

/**
 * A residue snapshot lacks an item that an older agent does not know. A residue snapshot of a host without a known tenant also lacks the residue
 * items about the tenant.
 */
export const ResidueSnapshot = z.partialRecord(
  z.enum(RESIDUE_ITEM_NAMES as [ResidueItem, ...ResidueItem[]]),
  ResidueReading,
);
export type ResidueSnapshot = z.output<typeof ResidueSnapshot>;

/** The reason why a residue item is unreadable is cut to the length that the schema allows. */
export const unreadableBecause = (reason: string): ResidueReading => ({
  unreadable: reason.slice(0, LONGEST_REASON) || "no reason was given",
});

/** The account of the tenant whose traces the agent searches for on the host. */
export const ResidueTenant = z.strictObject({
  login_user: z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/),
  uid: z.int().min(1000).max(4_294_967_294),
});
export type ResidueTenant = z.output<typeof ResidueTenant>;

/** The name of the entry of the item `credentials` for a user with keys in the kernel. */
export const kernelKeysOf = (uid: number): string => `kernel keys of user ${uid}`;
