/** The secrets in the test data, which may occur in no database row and no log line of a test. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_API_KEY } from "../fakes/maas/state/seed.ts";
import { SITE_BMC_PASSWORD } from "../fakes/maas/state/site.ts";
import { DEPLOY_PASSWORD } from "./deploy-password.ts";
import { type Leak, SecretSearch } from "./secret-search.ts";

export function knownSecrets(): SecretSearch {
  const search = new SecretSearch();
  search.add("the site's BMC password", SITE_BMC_PASSWORD);
  search.add("the deploy password", DEPLOY_PASSWORD);
  const [consumer = "", key = "", secret = ""] = DEFAULT_API_KEY.split(":");
  search.add("the consumer key of the MAAS token", consumer);
  search.add("the key of the MAAS token", key);
  search.add("the secret of the MAAS token", secret);
  return search;
}

/** The secrets that one test file has leaked into log lines. */
const logged: Leak[] = [];
const search = knownSecrets();

export const noteLogLine = (line: string): void => void logged.push(...search.leaksIn("a log line", line));

export const takeLoggedLeaks = (): Leak[] => logged.splice(0);

/** Searches the logs of hubs, agents and first boots below a folder for secrets. */
export function leaksInLogsBelow(folder: string, secrets: SecretSearch): Leak[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(log|status)$/.test(entry.name) && entry.name !== "maas.log")
    .map((entry) => join(entry.parentPath, entry.name))
    .flatMap((file) => secrets.leaksIn(file, readFileSync(file, "utf8")));
}

export class SecretLeaked extends Error {
  override readonly name = "SecretLeaked";
  constructor(leaks: readonly Leak[]) {
    super(
      `A secret was found where none may be: ${leaks.map(({ secret, spelling, place }) => `${secret}, ${spelling}, in ${place}`).join("; ")}`,
    );
  }
}
