import { readFileSync } from "node:fs";
import type { UserDataInput } from "../input.ts";
import { type ShellValues, shellHeader } from "../shell-quote.ts";

/** Who has to act when a part of the user-data fails on a host: the site for its own bootstrap scripts, Muster for all other parts (lifecycle 9). */
export type PartOwner = "site" | "muster";

export type Part = {
  /**
   * The file name of the part in the MIME document. A shell part's name begins with a number, because cloud-init runs shell parts in the order of
   * their names.
   */
  readonly name: string;
  readonly contentType: "text/x-shellscript" | "text/cloud-boothook" | "text/cloud-config";
  /** Renders the text of this user-data part for one host; null if the host does not need the part. */
  readonly render: (input: UserDataInput) => string | null;
};

export const partFile = (name: string): string => readFileSync(new URL(name, import.meta.url), "utf8");

const LIBRARY = partFile("library.sh");

/** Renders a complete shell script from its values, the shared library and its body. The shell text `before` runs before the script writes any file. */
export const shellScript = (script: {
  readonly name: string;
  readonly owner: PartOwner;
  readonly values: ShellValues;
  readonly body: string;
  readonly before?: string;
}): string => {
  const header = shellHeader({ PART_NAME: script.name, PART_OWNER: script.owner, ...script.values });
  return `#!/bin/bash\n${script.before ?? ""}${header}\n${LIBRARY}\n${script.body}`;
};

/**
 * A shell part of the user-data consists of its values as read-only variables, the shared library, and the part's static body. A shell part needs no
 * other file, so a person can run, read and test each part alone.
 */
export const shellPart = (part: {
  readonly name: `${number}-${string}.sh`;
  readonly owner: PartOwner;
  readonly body: string;
  readonly values: (input: UserDataInput) => ShellValues | null;
}): Part => ({
  name: part.name,
  contentType: "text/x-shellscript",
  render: (input) => {
    const values = part.values(input);
    if (values === null) return null;
    return shellScript({ ...part, name: part.name.replace(/\.sh$/, ""), values });
  },
});
