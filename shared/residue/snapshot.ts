import { z } from "zod";
import { RESIDUE_ITEM_NAMES, type ResidueItem } from "./items.ts";

/**
 * The largest number of entries that one residue item has in the agent's snapshot of a host. Of all residue items, the list of installed packages has
 * the most entries.
 */
export const MOST_ENTRIES = 3_000;
/**
 * The largest number of characters in the name of an entry in a residue snapshot. The agent escapes characters that are not printable ASCII in the
 * names of a residue snapshot's entries.
 */
export const LONGEST_NAME = 200;
/**
 * The largest size in bytes of one residue item (for example the mounts) as JSON. The residue item with the list of installed packages may be larger
 * than the other residue items.
 */
export const MAX_ITEM_BYTES = 32 * 1024;
export const MAX_PACKAGES_BYTES = 160 * 1024;
/** The largest size of a whole residue snapshot as JSON, which leaves room in a frame of `MAX_FRAME_BYTES`. */
export const MAX_SNAPSHOT_BYTES = 320 * 1024;
const LONGEST_REASON = 300;

/**
 * The digest that stands for the content of an entry (for example a file) in a residue snapshot: the first 96 bits of a keyed SHA-256, in base64url.
 * The key of the digests in a residue snapshot never leaves the host, so nobody else can test a guess about the text behind a digest.
 */
const Digest = z.string().regex(/^[A-Za-z0-9_-]{16}$/);
export const ResidueEntry = z.strictObject({ name: z.string().min(1).max(LONGEST_NAME), digest: Digest });
export type ResidueEntry = z.output<typeof ResidueEntry>;

/** For each residue item (for example the mounts), the agent reports either all entries or the reason why it could not read them. */
export const ResidueReading = z.union([
  z.strictObject({ entries: z.array(ResidueEntry).max(MOST_ENTRIES) }),
  z.strictObject({ unreadable: z.string().min(1).max(LONGEST_REASON) }),
]);
export type ResidueReading = z.output<typeof ResidueReading>;

/**
 * In a residue snapshot by an older agent, the residue items that this agent does not know are missing. A residue snapshot of a host without a known
 * tenant lacks the residue items that concern only the tenant.
 */
export const ResidueSnapshot = z.partialRecord(
  z.enum(RESIDUE_ITEM_NAMES as [ResidueItem, ...ResidueItem[]]),
  ResidueReading,
);
export type ResidueSnapshot = z.output<typeof ResidueSnapshot>;

/** The reason why the agent could not read a residue item is cut to the length that the schema allows. */
export const unreadableBecause = (reason: string): ResidueReading => ({
  unreadable: reason.slice(0, LONGEST_REASON) || "no reason was given",
});

/** The account of the tenant whose traces the agent searches for on the host. */
export const ResidueTenant = z.strictObject({
  login_user: z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/),
  uid: z.int().min(1000).max(4_294_967_294),
});
export type ResidueTenant = z.output<typeof ResidueTenant>;

/** The name by which the residue item `credentials` lists a user who has keys in the kernel's keyring. */
export const kernelKeysOf = (uid: number): string => `kernel keys of user ${uid}`;
