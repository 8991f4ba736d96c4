import { readFileSync } from "node:fs";
import { join } from "node:path";

export type FoundToken =
  | { readonly ok: true; readonly token: string }
  | { readonly ok: false; readonly message: string };

const FILE = "admin-token";
const OF_REPOSITORY = ".muster/hub";
const OF_PACKAGE = "var/lib/muster/hub";
const PACKAGE_SETTINGS = "etc/muster/hub.env";

/** True if the address is one of this machine, which no other machine can answer. */
export function isLoopback(url: string): boolean {
  const host = URL.canParse(url) ? new URL(url).hostname : "";
  return host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** The admin token of the hub on this machine goes to no other machine, because whoever answers there could use it here. */
export const notHere = (url: string): string =>
  `The command has no token for ${url}. The admin token of the hub on this machine goes only to the addresses localhost, 127.0.0.0/8 and ::1. Set MUSTER_TOKEN or MUSTER_TOKEN_FILE, give --token-file, or run: muster login`;

/**
 * Finds the admin token of the hub on this machine: below the folder of the settings MUSTER_SHARED_DIR or MUSTER_STATE_DIR, below the present folder if
 * it is the repository, or in the folder of the package's hub. `root` is `/`, or a folder that stands for it in a test.
 */
export function defaultToken(root: string, env: Readonly<Record<string, string | undefined>>): FoundToken {
  const given = env["MUSTER_SHARED_DIR"] || env["MUSTER_STATE_DIR"];
  const folders = given ? [given] : [OF_REPOSITORY, ...packageFolders(root)];
  const looked: string[] = [];
  for (const path of folders.map((folder) => join(folder, FILE))) {
    const read = readToken(path);
    if (read.ok) return read;
    looked.push(`${path} (${read.message})`);
  }
  return {
    ok: false,
    message: `The command has no token. It looked for ${looked.join(" and ")}. Set MUSTER_TOKEN or MUSTER_TOKEN_FILE, give --token-file, or run the command as a user who may read the file, for example with sudo.`,
  };
}

/**
 * A hub that was installed as a package keeps its admin token in the folder that the package's settings file names, as far as this user may read that
 * file.
 */
function packageFolders(root: string): string[] {
  const settings = textOf(join(root, PACKAGE_SETTINGS));
  const folder = settings.ok ? /^\s*MUSTER_SHARED_DIR=["']?([^"'\n]+)/m.exec(settings.text)?.[1]?.trim() : undefined;
  return [join(root, folder ?? OF_PACKAGE)];
}

function readToken(path: string): FoundToken {
  const read = textOf(path);
  if (!read.ok) return { ok: false, message: read.code === "ENOENT" ? "no such file" : read.code };
  const token = read.text.trim();
  return token === "" ? { ok: false, message: "empty" } : { ok: true, token };
}

function textOf(
  path: string,
): { readonly ok: true; readonly text: string } | { readonly ok: false; readonly code: string } {
  try {
    return { ok: true, text: readFileSync(path, "utf8") };
  } catch (error) {
    return { ok: false, code: error instanceof Error && "code" in error ? String(error.code) : String(error) };
  }
}
