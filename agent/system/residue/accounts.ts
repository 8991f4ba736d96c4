import { join } from "node:path";
import { isPersonal } from "./processes.ts";
import { linesOf, namesIn, type Reading, readText } from "./reading.ts";

export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly home: string;
}

export async function readAccounts({ root }: Reading): Promise<Account[]> {
  return linesOf(await readText(join(root, "etc/passwd"))).flatMap((line) => {
    const [name, , uid, , , home] = line.split(":");
    return name === undefined || uid === undefined || home === undefined ? [] : [{ name, uid: Number(uid), home }];
  });
}

/** The home folders of root and of people's accounts, and every folder in /home, also a folder without an account. */
export async function readHomes(reading: Reading): Promise<string[]> {
  const accounts = await readAccounts(reading);
  const homes = accounts
    .filter(({ uid, home }) => (uid === 0 || isPersonal(uid)) && home.startsWith("/") && home !== "/")
    .map(({ home }) => home.replace(/\/+$/, ""));
  const left = await namesIn(reading, "/home");
  return [...new Set(["/root", ...homes, ...left.map((name) => `/home/${name}`)])].sort();
}
