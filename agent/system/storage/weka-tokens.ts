import { closeSync, readFileSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { parseAccounts } from "../../accounts/account-files.ts";
import { isMissing } from "../files.ts";
import { codeOf, entryPath, type OpenFolder, openFolderBelow } from "./descriptors.ts";
import type { StepEnd } from "./works.ts";

/** The file into which `weka user login` writes an access token and a refresh token. */
const TOKEN_FILE = "auth-token.json";
const TOKEN_FOLDER = ".weka";

/**
 * Removes Weka's login tokens from the home folders of all accounts. The agent follows no symbolic link to a home or its folder `.weka`, because the
 * user may change both.
 */
export function removeWekaTokens(root: string): StepEnd {
  const homes = homesIn(readPasswd(root));
  let removed = 0;
  const faults: string[] = [];
  for (const home of homes) {
    const end = removeToken(root, home);
    if (end === "removed") removed += 1;
    else if (end !== "none") faults.push(`${home}: ${end}.`);
  }
  const evidence = { homes: homes.length, tokens_removed: removed, failures: faults.length };
  return faults.length > 0
    ? { outcome: "failed", message: faults.slice(0, 5).join(" "), evidence }
    : {
        outcome: "ok",
        message: "A token that was copied is valid until it expires. Revoke it at the Weka cluster.",
        evidence,
      };
}

/** Returns the home folders in /etc/passwd, without `/`, relative paths and paths with `..`. */
export const homesIn = (passwd: string): string[] => [
  ...new Set(
    parseAccounts(passwd)
      .map(({ home }) => home)
      .filter((home) => home.startsWith("/") && home !== "/" && !home.split("/").includes("..")),
  ),
];

function readPasswd(root: string): string {
  try {
    return readFileSync(join(root, "etc/passwd"), "utf8");
  } catch (error) {
    if (isMissing(error)) throw new Error("The host has no /etc/passwd, so its homes are not known.");
    throw error;
  }
}

/** Removes the Weka login token from one home folder. Returns `removed`, `none`, or why the token may still be there. */
function removeToken(root: string, home: string): string {
  let folder: OpenFolder;
  try {
    folder = openFolderBelow(root, `${home}/${TOKEN_FOLDER}`);
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT") return "none";
    return code === "ENOTDIR" || code === "ELOOP"
      ? `the home or ${TOKEN_FOLDER} is a symbolic link or no folder, so its token was not looked for`
      : `${TOKEN_FOLDER} could not be opened (${code})`;
  }
  try {
    unlinkSync(entryPath(folder.fd, Buffer.from(TOKEN_FILE)));
    return "removed";
  } catch (error) {
    const code = codeOf(error);
    return code === "ENOENT" ? "none" : `the token could not be removed (${code})`;
  } finally {
    closeSync(folder.fd);
  }
}
