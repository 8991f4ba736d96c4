import { RESIDUE_ITEM_NAMES, type ResidueItem, ruleOf } from "../../../shared/residue/items.ts";
import {
  MAX_ITEM_BYTES,
  MAX_PACKAGES_BYTES,
  MOST_ENTRIES,
  type ResidueReading,
  type ResidueTenant,
  unreadableBecause,
} from "../../../shared/residue/snapshot.ts";
import { withoutCredentials } from "../../../shared/without-credentials.ts";
import { messageOf } from "../../message-of.ts";
import { toolsOf } from "../exec.ts";
import { keyedDigest } from "./digest.ts";
import { entryName } from "./entry-name.ts";
import { DEADLINE_MS, LONG_DEADLINES_MS, type Reader, readersOf } from "./readers.ts";
import type { Reading } from "./reading.ts";

export interface ReadingOptions {
  readonly root: string;
  readonly tenant: ResidueTenant | null;
  readonly items: readonly ResidueItem[];
  readonly pauseMs: number;
}

/**
 * Returns the items of the host's state that a residue snapshot contains, for example `accounts` and `mounts`. If the host has no tenant, the residue
 * snapshot leaves out the items that look for a tenant's traces.
 */
export const itemsFor = (tenant: ResidueTenant | null): readonly ResidueItem[] =>
  RESIDUE_ITEM_NAMES.filter((item) => tenant !== null || ruleOf(item) !== "tenant");

/** Each item of the residue snapshot has its own deadline, and the agent reads the other items even if one is unreadable. */
export async function* readItems(
  options: ReadingOptions,
): AsyncGenerator<{ item: ResidueItem; reading: ResidueReading }> {
  const digest = await keyedDigest(options.root);
  const readers = readersOf();
  for (const item of options.items)
    yield { item, reading: await readWithin(item, readers[item], { ...options, digest, run: toolsOf(options.root) }) };
}

async function readWithin(item: ResidueItem, read: Reader, base: Omit<Reading, "signal">): Promise<ResidueReading> {
  const deadlineMs = LONG_DEADLINES_MS[item] ?? DEADLINE_MS;
  const abort = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const error = new Error(`The host did not answer within ${deadlineMs / 1000} s.`);
      abort.abort(error);
      reject(error);
    }, deadlineMs);
  });
  try {
    return bounded(item, await Promise.race([read({ ...base, signal: abort.signal }), passed]));
  } catch (error) {
    // An error's message may contain a path that a tenant chose, so `entryName` escapes the message. The message of a failed read of the host may
    // also contain what a tool printed, so `withoutCredentials` removes secrets from the message.
    return unreadableBecause(entryName(withoutCredentials(messageOf(error))));
  } finally {
    clearTimeout(timer);
  }
}

/** An item of the residue snapshot with too many entries is unreadable as a whole, because a shortened list could hide an entry. */
function bounded(item: ResidueItem, entries: readonly { name: string; digest: string }[]): ResidueReading {
  const maxBytes = item === "packages" ? MAX_PACKAGES_BYTES : MAX_ITEM_BYTES;
  const bytes = JSON.stringify(entries).length;
  if (entries.length <= MOST_ENTRIES && bytes <= maxBytes) return { entries: [...entries] };
  const examples = entries.slice(0, 3).map(({ name }) => name.slice(0, 50));
  return unreadableBecause(
    `The item has ${entries.length} entries of ${bytes} bytes, and at most ${maxBytes} bytes are compared, for example ${examples.join(", ")}.`,
  );
}
