import { join } from "node:path";
import { type Account, parseAccounts } from "../../accounts/account-files.ts";
import { isHuman } from "../../accounts/human-uid.ts";
import { namesIn, type Reading, readText } from "./reading.ts";

export async function readAccounts({ root }: Reading): Promise<Account[]> {
  return parseAccounts(await readText(join(root, "etc/passwd")));
}

/** The home folders of root and of people's accounts, and every folder in /home, even without an account. */
export async function readHomes(reading: Reading): Promise<string[]> {
  const accounts = await readAccounts(reading);
  const homes = accounts
    .filter(({ uid, home }) => (uid === 0 || isHuman(uid)) && home.startsWith("/") && home !== "/")
    .map(({ home }) => home.replace(/\/+$/, ""));
  const left = await namesIn(reading, "/home");
  return [...new Set(["/root", ...homes, ...left.map((name) => `/home/${name}`)])].sort();
}
