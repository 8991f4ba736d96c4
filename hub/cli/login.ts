import { parseArgs } from "node:util";
import { z } from "zod";
import { COMMON_FLAGS } from "./arguments.ts";
import { credentialsFile, readLogin, withLock, writeLogin } from "./credentials.ts";
import { Refused, UsageError } from "./errors.ts";
import type { Login } from "./login-forms.ts";
import { plain } from "./output/plain.ts";
import { call, DEADLINE_MS, fetchFrom, hubOf, read, type Target } from "./request.ts";

const LOGIN_HELP = `muster login
Log in at a hub, for the next commands of this user at that hub. The command prints an address and a code for a browser on any device.
  --with-token  reads an API token from standard input, in place of a login by the hub's provider
  --hub URL, --context NAME, --ca-file FILE  as for every command; each context has a login of its own

muster logout
Forget the login at a hub, and tell the provider that its refresh token is no longer used.

The login is in the file muster/credentials.json of $XDG_STATE_HOME (by default ~/.local/state), which only its owner may read. The flag --token-file
and the variables MUSTER_TOKEN_FILE and MUSTER_TOKEN come before a login.
`;

const Offer = z.looseObject({
  provider: z
    .looseObject({
      issuer: z.url(),
      client_id: z.string(),
      scopes: z.string(),
      resource: z.string().nullable(),
    })
    .nullable(),
});
const Status = z.looseObject({ you: z.looseObject({ name: z.string(), role: z.string() }) });

const note = (text: string): void => void process.stderr.write(text);

/** Runs `muster login`, `muster logout` or their help. */
export async function runLogin(argv: readonly string[]): Promise<void> {
  const [command] = argv;
  if (command === "help" || argv.includes("--help")) process.stdout.write(LOGIN_HELP);
  else if (command === "login") await logIn(argv.slice(1));
  else await logOut(argv.slice(1));
}

function flagsOf(argv: readonly string[], command: string): Readonly<Record<string, unknown>> {
  const options = {
    hub: COMMON_FLAGS.hub,
    context: COMMON_FLAGS.context,
    "ca-file": COMMON_FLAGS["ca-file"],
    "with-token": { type: "boolean" },
  } as const;
  try {
    return parseArgs({ args: [...argv], options }).values;
  } catch {
    throw new UsageError(`There is an unknown argument. See: muster help ${command}`);
  }
}

async function logIn(argv: readonly string[]): Promise<void> {
  const flags = flagsOf(argv, "login");
  const { url: hub, login: loginName } = await hubOf(flags, process.env);
  const url = hub.value;
  const login = flags["with-token"] === true ? tokenFromInput() : await byProvider(url);
  const file = credentialsFile(process.env);
  const { you } = await whoAmI({
    url,
    token: tokenOf(login),
    login: null,
    noToken: null,
    logins: file,
    loginName,
    note,
  });
  await withLock(file, () => writeLogin(file, loginName, login));
  process.stdout.write(`Logged in at ${url} as ${plain(you.name)} with the role ${plain(you.role)}.\n`);
}

const tokenOf = (login: Login): string => (login.kind === "token" ? login.token : login.access_token);

function tokenFromInput(): Login {
  const token = read("-").trim();
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new UsageError("Standard input holds no token. Write: muster login --with-token < FILE");
  return { kind: "token", token };
}

async function byProvider(url: string): Promise<Login> {
  const response = await fetchFrom(url, "/api/v1/sign-in", { signal: AbortSignal.timeout(DEADLINE_MS) });
  if (!response.ok) throw new Refused(`${url} answered ${response.status}. Check that this is the address of a hub.`);
  const { provider } = Offer.parse(await response.json());
  if (provider === null)
    throw new Refused(`The hub at ${url} has no provider for logins. Use a token: muster login --with-token < FILE`);
  const { logInByDevice } = await import("./provider.ts");
  return logInByDevice(provider, note);
}

/** A login that the hub does not accept is not stored. */
async function whoAmI(target: Target): Promise<z.output<typeof Status>> {
  const invocation = { path: "/api/v1/admin/status", query: new URLSearchParams(), body: null };
  const response = await call(target, { method: "GET", invocation, deadlineMs: DEADLINE_MS });
  return Status.parse(await response.json());
}

async function logOut(argv: readonly string[]): Promise<void> {
  const { url: hub, login: loginName } = await hubOf(flagsOf(argv, "logout"), process.env);
  const url = hub.value;
  const file = credentialsFile(process.env);
  const login = await withLock(file, async () => {
    const found = await readLogin(file, loginName);
    if (found !== null) await writeLogin(file, loginName, null);
    return found;
  });
  if (login === null) return void process.stdout.write(`There was no login at ${url}.\n`);
  process.stdout.write(`Logged out at ${url}.\n`);
  if (login.kind === "token") return note("The token itself is still valid. Revoke it if nobody needs it any more.\n");
  const { revokeLogin } = await import("./provider.ts");
  await revokeLogin(login).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    note(`The provider could not be told (${plain(why)}). The login ends there by itself.\n`);
  });
}
