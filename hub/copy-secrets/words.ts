import type { SecretsSettings } from "../secrets/open.ts";
import type { CopiedSecret, Outcome } from "./copy.ts";

export type Counts = Readonly<Record<Outcome, number>>;

const TOLD: Readonly<Record<Exclude<Outcome, "absent">, string>> = {
  copied: "copied",
  there_already: "there already",
  missing: "missing",
  corrupt: "unreadable",
  differs: "different",
};

export const UNUSED_DATABASE =
  "No hub has started on this database yet, so there is nothing to copy. Run this command with the environment of the hub that you move, especially its DATABASE_URL or MUSTER_STATE_DIR.";

/** `lineOf` returns null for an optional secret that does not exist. */
export const lineOf = ({ path, outcome }: CopiedSecret): string | null =>
  outcome === "absent" ? null : `${TOLD[outcome].padEnd(13)}  ${path}`;

export const totalOf = (counts: Counts): string =>
  `${Object.entries(TOLD)
    .map(([outcome, told]) => `${counts[outcome as Outcome]} ${told}`)
    .join(", ")}.`;

/** The message after a copy of the secrets that stopped with an error; the next line of the output gives the reason. */
export const BROKEN_OFF =
  "The copy stopped, and nothing was removed. Correct the following error, then run this command again; it continues from here.";

export const nameOf = (store: SecretsSettings): string =>
  store.kind === "sealed_file"
    ? `the sealed files in ${store.directory}`
    : `Vault at ${store.url}, mount ${store.mount}${store.namespace === null ? "" : `, namespace ${store.namespace}`}`;

export const beganBy = (from: SecretsSettings, to: SecretsSettings): string =>
  `Copying every secret that the database names, from ${nameOf(from)} to ${nameOf(to)}.`;

const removing = (store: SecretsSettings): string =>
  store.kind === "sealed_file"
    ? `remove the folder ${store.directory}, which the next copy creates again`
    : `remove the new store's value from Vault (vault kv metadata delete ${store.mount}/...)`;

/**
 * Returns the reasons why no hub can use the new secret store yet, with advice. The list of reasons is empty if a hub can use the new secret store.
 */
export function adviceOn(counts: Counts, from: SecretsSettings, to: SecretsSettings): string[] {
  const advice: string[] = [];
  if (counts.missing + counts.corrupt > 0)
    advice.push(
      `A hub cannot use the secrets that are missing or unreadable in ${nameOf(from)} either. Restore them from a backup; or start a hub with that store, write the credential again or delete the object that names it, and stop the hub.`,
    );
  if (counts.differs > 0)
    advice.push(
      `The secrets shown as different have another value in ${nameOf(to)}, which was kept. Find out which value is right. If it is the old store's, ${removing(to)}. If it is the new store's, start a hub with the old store, write the value there too, and stop the hub.`,
    );
  return advice.length === 0
    ? []
    : ["Not finished, and nothing was removed.", ...advice, "Then run this command again."];
}

export const doneBy = (from: SecretsSettings, to: SecretsSettings): string[] => [
  `Every secret is in ${nameOf(to)}, and was read back and compared. Nothing was removed from ${nameOf(from)}.`,
  `Next: set MUSTER_SECRETS=${to.kind} for every hub of this database, and start them. Once GET /readyz says "secret_store": "ok", remove the old store.`,
  "Do not start a hub with the old store before that: a secret written there from now on would not be in the new store. If you have started one, run this command again; it shows what differs.",
];
