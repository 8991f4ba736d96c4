import { readFileSync } from "node:fs";
import type { UserDataInput } from "../input.ts";
import { type ShellValues, shellHeader } from "../shell-quote.ts";

/** The owner of a part, who has to act when it fails: the site for its bundle, otherwise Muster (lifecycle 9). */
export type PartOwner = "site" | "muster";

export type Part = {
  /** The file name in the MIME part. The name begins with a number, because cloud-init runs shell parts in the order of their names. */
  readonly name: string;
  readonly contentType: "text/x-shellscript" | "text/cloud-boothook" | "text/cloud-config";
  /** The part's text, or null where this host does not need it. */
  readonly render: (input: UserDataInput) => string | null;
};

/** The text of a file in this folder. */
export const partFile = (name: string): string => readFileSync(new URL(name, import.meta.url), "utf8");

const LIBRARY = partFile("library.sh");

/** A complete script: values, the shared library, the body. `before` runs before anything is written. */
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
 * A shell part consists of its values as read-only variables, the shared library, and the part's static body. A part needs no other file, so each
 * part can be run, read and tested alone.
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
