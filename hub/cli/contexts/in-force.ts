import { UsageError } from "../errors.ts";
import { contextsFile, readContexts } from "./context-file.ts";

type Environment = Readonly<Record<string, string | undefined>>;
export type Given = Readonly<Record<string, unknown>>;

/** The value of a setting, and the place where the command found it, such as a flag, an environment variable or a context. */
export interface From {
  readonly value: string;
  readonly from: string;
}

/** The hub that a command uses, and the settings with which it uses the hub. */
export interface InForce {
  readonly context: From | null;
  readonly url: From;
  readonly caFile: From | null;
  /** The file with the API token, or the variable that holds the token. */
  readonly tokenFile: From | null;
  readonly tokenVariable: From | null;
  /** The name under which the file of logins holds the login for the hub. */
  readonly login: string;
}

const STANDARD_URL = "http://127.0.0.1:8480";
const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
const first = (...all: readonly (readonly [string | undefined, string])[]): From | null => {
  const [found] = all.flatMap(([value, from]) => (value === undefined ? [] : [{ value, from }]));
  return found ?? null;
};

/**
 * Says which hub a command uses. The first of these names the hub: `--hub`, `--context`, MUSTER_URL, MUSTER_CONTEXT, the current context. If the
 * command uses another hub than that of the context, no setting of the context applies, so that the context's token never goes to another hub.
 */
export async function inForce(flags: Given, env: Environment): Promise<InForce> {
  const named = first([text(flags["context"]), "--context"]);
  if (named !== null && text(flags["hub"]) !== undefined)
    throw new UsageError("--hub and --context both name a hub. Give one of them.");
  const url = first(
    [text(flags["hub"]), "--hub"],
    [named === null ? text(env["MUSTER_URL"]) : undefined, "MUSTER_URL"],
  );
  const context = url === null ? await contextOf(named, env) : null;
  const where = `context ${context?.name}`;
  const of = context?.value;
  const plain = plainUrl(url ?? first([of?.url, where], [STANDARD_URL, "default"]));
  return {
    context: context === null ? null : { value: context.name, from: context.from },
    url: plain,
    caFile: first(
      [text(flags["ca-file"]), "--ca-file"],
      [text(env["MUSTER_CA_FILE"]), "MUSTER_CA_FILE"],
      [of?.ca_file, where],
    ),
    ...tokenOf(flags, env, [of?.token_file, where]),
    login: context === null ? plain.value : loginOf(context.name, plain.value),
  };
}

/** A context's login is stored under the context's name and address, so that the login never goes to another hub that later gets the same name. */
export const loginOf = (context: string, url: string): string => `context ${context} at ${url}`;

const plainUrl = (url: From | null): From => ({
  value: (url?.value ?? STANDARD_URL).replace(/\/+$/, ""),
  from: url?.from ?? "default",
});

/** A token in the environment comes before the token file of a context, because a context only gives defaults. */
function tokenOf(
  flags: Given,
  env: Environment,
  ofContext: readonly [string | undefined, string],
): Pick<InForce, "tokenFile" | "tokenVariable"> {
  const tokenFile = first([text(flags["token-file"]), "--token-file"], [env["MUSTER_TOKEN_FILE"], "MUSTER_TOKEN_FILE"]);
  if (tokenFile !== null) return { tokenFile, tokenVariable: null };
  const tokenVariable = first([env["MUSTER_TOKEN"], "MUSTER_TOKEN"]);
  return tokenVariable === null ? { tokenFile: first(ofContext), tokenVariable } : { tokenFile: null, tokenVariable };
}

async function contextOf(named: From | null, env: Environment) {
  const { contexts, current } = await readContexts(env);
  const asked =
    named ?? first([text(env["MUSTER_CONTEXT"]), "MUSTER_CONTEXT"], [current ?? undefined, contextsFile(env)]);
  if (asked === null) return null;
  const value = contexts[asked.value];
  if (value !== undefined) return { name: asked.value, from: asked.from, value };
  const known = Object.keys(contexts).join(", ");
  throw new UsageError(
    `There is no context ${asked.value} (${asked.from}). ${known === "" ? "Add one: muster context add" : `The contexts are: ${known}`}.`,
  );
}
