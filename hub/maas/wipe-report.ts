import { z } from "zod";
import type { Transport } from "./http.ts";
import type { MaasPort, WipedDisk, WipeMethod } from "./port.ts";

const SCRIPT = "wipe-disks";
/**
 * The largest number of characters that the parser reads of the output of MAAS's release script. For a host with a hundred disks, MAAS's release
 * script writes some ten thousand characters.
 */
const MAX_OUTPUT = 256 * 1024;
const MAX_DISKS = 512;

const LISTED = /^(\S+(?:, \S+)*) to be wiped\.$/;
/**
 * The last message of MAAS's release script about a disk, and the erase method that the message proves. MAAS's release script prints success even
 * after a quick erase of which one half failed.
 */
const LAST_WORDS: readonly (readonly [words: RegExp, method: WipeMethod])[] = [
  [/^(\S+): successfully securely erased\.$/, "secure"],
  [/^Secure erase was successful on NVMe drive (\S+)$/, "secure"],
  [/^(\S+): successfully zeroed\.$/, "zero"],
  [/^(\S+): successfully zeroed \(using write-zeroes\)\.$/, "write_zeroes"],
  [/^(\S+): successfully quickly wiped\.$/, "quick"],
];
const FAILED = /^(\S+): (?:wipefs failed|OS error while wiping|failed to be quickly wiped)/;

/**
 * From the output of MAAS's release script, the parser reads how the script erased each disk. A disk has the method `none` if the script's output
 * contains no known last message about the disk.
 */
export function parseWipe(output: string): readonly WipedDisk[] {
  const methods = new Map<string, WipeMethod>();
  const failed = new Set<string>();
  for (const line of output.slice(0, MAX_OUTPUT).split("\n")) {
    const listed = LISTED.exec(line)?.[1];
    if (listed !== undefined) for (const name of listed.split(", ").slice(0, MAX_DISKS)) methods.set(name, "none");
    for (const [words, method] of LAST_WORDS) {
      const name = words.exec(line)?.[1];
      if (name !== undefined && methods.has(name)) methods.set(name, method);
    }
    const name = FAILED.exec(line)?.[1];
    if (name !== undefined) failed.add(name);
  }
  return [...methods].map(([name, method]) => ({ name, method: failed.has(name) ? "none" : method }));
}

const Base64 = z
  .string()
  .max(4 * MAX_OUTPUT)
  .nullish()
  .transform((text) => Buffer.from(text ?? "", "base64").toString("utf8"));
const ScriptSets = z.array(
  z.object({ id: z.int(), results: z.array(z.object({ name: z.string(), stdout: Base64, output: Base64 })).nullish() }),
);

export function wipeReport(http: Transport): Pick<MaasPort, "wipedDisks"> {
  return {
    wipedDisks: async (systemId) => {
      const query = { type: "release", filters: SCRIPT, include_output: "true" };
      const path = `nodes/${encodeURIComponent(systemId)}/results/`;
      const sets = await http.json({ method: "GET", path, query }, ScriptSets);
      const newest = sets.toSorted((a, b) => b.id - a.id)[0];
      const result = newest?.results?.find(({ name }) => name === SCRIPT);
      const output = result?.stdout || result?.output || "";
      return output === "" ? null : parseWipe(output);
    },
  };
}
