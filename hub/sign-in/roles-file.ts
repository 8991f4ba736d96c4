import { readFile, stat } from "node:fs/promises";
import type { Log } from "../../shared/log.ts";
import { type RoleRule, RoleRules } from "./role-rules.ts";

const MAX_BYTES = 256 * 1024;

/** The error of a file of MUSTER_OIDC_ROLES_FILE that cannot be used. */
export class RolesFileError extends Error {
  override readonly name = "RolesFileError";
}

/**
 * The rules of roles, from a file that an operator may change at any time. At each request of a person, the hub reads the rules file again if the
 * file has changed, so a removed rule takes effect at the person's next request. If the changed rules file cannot be used, the last valid rules stay
 * in use and the log says why.
 */
export class RolesFile {
  readonly #path: string;
  readonly #log: Log;
  #rules: readonly RoleRule[];
  #seen: string;
  #reading: Promise<void> = Promise.resolve();

  private constructor(path: string, log: Log, read: Read) {
    this.#path = path;
    this.#log = log;
    this.#rules = read.rules;
    this.#seen = read.seen;
  }

  /** Throws `RolesFileError` if the file cannot be used, so that a hub with wrong rules does not start. */
  static async open(path: string, log: Log): Promise<RolesFile> {
    return new RolesFile(path, log, await readRules(path, await versionOf(path)));
  }

  async rules(): Promise<readonly RoleRule[]> {
    const now = await versionOf(this.#path);
    if (now !== this.#seen) {
      this.#seen = now;
      this.#reading = this.#readAgain(now);
    }
    // Each request waits for the end of a reading of the rules file that has begun, so no request uses rules that the file no longer has.
    await this.#reading;
    return this.#rules;
  }

  async #readAgain(seen: string): Promise<void> {
    try {
      this.#rules = (await readRules(this.#path, seen)).rules;
      this.#log.info("the rules of roles were read again", { rules: this.#rules.length });
    } catch (error) {
      if (!(error instanceof RolesFileError)) throw error;
      this.#log.error("the changed rules of roles cannot be used; the last valid ones stay in use", { error });
    }
  }
}

interface Read {
  readonly rules: readonly RoleRule[];
  readonly seen: string;
}

/** Returns a text that differs whenever the rules file has changed. */
async function versionOf(path: string): Promise<string> {
  const found = await stat(path, { bigint: true }).catch(() => null);
  return found === null ? "missing" : `${found.ino} ${found.size} ${found.mtimeNs}`;
}

async function readRules(path: string, seen: string): Promise<Read> {
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw refuse(`it cannot be read (${cause instanceof Error && "code" in cause ? cause.code : "unknown"})`, cause);
  });
  if (text.length > MAX_BYTES) throw refuse(`it has more than ${MAX_BYTES} bytes`);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw refuse("it is not JSON", cause);
  }
  const parsed = RoleRules.safeParse(json);
  if (parsed.success) return { rules: parsed.data, seen };
  const [first] = parsed.error.issues;
  throw refuse(`/${first?.path.map(String).join("/") ?? ""}: ${first?.message ?? "is not valid"}`);
}

const refuse = (fault: string, cause?: unknown): RolesFileError =>
  new RolesFileError(`The file of MUSTER_OIDC_ROLES_FILE cannot be used: ${fault}. See docs/sign-in.md.`, { cause });
