import { homedir } from "node:os";
import { join } from "node:path";
import { UsageError } from "../errors.ts";
import { privateText, writePrivate } from "../private-file.ts";
import type { Contexts } from "./context-forms.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const EMPTY: Contexts = { version: 1, current: null, contexts: {} };

export const contextsFile = (env: Environment): string =>
  env["MUSTER_CONFIG"] ||
  join(env["XDG_CONFIG_HOME"] || join(env["HOME"] || homedir(), ".config"), "muster", "contexts.json");

/** Reads the contexts of this user. Without the file there are none. */
export async function readContexts(env: Environment): Promise<Contexts> {
  const file = contextsFile(env);
  const text = privateText(
    file,
    "Whoever changes it sends your requests and tokens elsewhere. Check its contexts, then run: chmod 600",
  );
  if (text === null) return EMPTY;
  const { Contexts: Form } = await import("./context-forms.ts");
  try {
    return Form.parse(JSON.parse(text));
  } catch {
    throw new UsageError(`${file} is damaged. Remove the file, and add the contexts again: muster context add`);
  }
}

export const writeContexts = (env: Environment, contexts: Contexts): void =>
  writePrivate(contextsFile(env), `${JSON.stringify(contexts, null, 1)}\n`);
