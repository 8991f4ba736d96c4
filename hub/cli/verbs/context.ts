import { resolve } from "node:path";
import type { Command } from "commander";
import { readContexts, writeContexts } from "../contexts/context-file.ts";
import type { Context } from "../contexts/context-forms.ts";
import { type From, type InForce, inForce, loginOf } from "../contexts/in-force.ts";
import { credentialsFile, readLogin, withLock, writeLogin } from "../credentials.ts";
import { UnknownName, UsageError } from "../errors.ts";
import { cellOf } from "../output/cells.ts";
import { tableText } from "../output/table.ts";
import { addGeneral, type Flags, namedFlags } from "../program/flags.ts";
import type { Run } from "../program/run.ts";
import { isLoopback } from "../token.ts";

export function add(context: Command, run: Run): void {
  const { io } = run;
  const named = (name: string, about: string): Command => context.command(name).summary(about).description(about);
  named("add", "Add a hub, or change what is known of it")
    .argument("<name>", "a name for the hub")
    .requiredOption("--url <url>", "the address of the hub")
    .option("--ca-file <file>", "the CA of the hub's https certificate, in PEM")
    .option("--token-file <file>", "a file with an API token; without it, the context's login is used")
    .option("--use", "make it the current context")
    .action((name: string, flags: Flags) => addContext(name, flags, run));
  named("use", "Make a context the current one")
    .argument("<name>", "the name of the context")
    .action(async (name: string) => {
      const all = await known(name, io);
      writeContexts(io.env, { ...all, current: name });
      io.out(`${name} is the current context.\n`);
    });
  named("list", "List the contexts").action(() => list(run));
  named("remove", "Remove a context and its login")
    .argument("<name>", "the name of the context")
    .action((name: string) => remove(name, run));
  addGeneral(named("show", "Show which hub a command uses, and where each value comes from")).action((flags: Flags) =>
    show(flags, run),
  );
}

async function known(name: string, io: Run["io"]) {
  const all = await readContexts(io.env);
  if (all.contexts[name] === undefined) throw new UnknownName(`There is no context ${name}. See: muster context list`);
  return all;
}

async function addContext(name: string, flags: Flags, { io }: Run): Promise<void> {
  const all = await readContexts(io.env);
  const { ContextName, HubUrl } = await import("../contexts/context-forms.ts");
  const fault = ContextName.safeParse(name).error?.issues[0]?.message;
  if (fault !== undefined) throw new UsageError(`The name of a context ${fault}.`);
  if (!HubUrl.safeParse(flags["url"]).success)
    throw new UsageError("--url takes the address of a hub, for example https://muster.example.com.");
  // A relative path would name another file when the operator works in another folder.
  const path = (key: string): string | undefined => (typeof flags[key] === "string" ? resolve(flags[key]) : undefined);
  const [caFile, tokenFile] = [path("caFile"), path("tokenFile")];
  const one: Context = {
    url: String(flags["url"]).replace(/\/+$/, ""),
    ...(caFile === undefined ? {} : { ca_file: caFile }),
    ...(tokenFile === undefined ? {} : { token_file: tokenFile }),
  };
  const current = flags["use"] === true || all.current === null ? name : all.current;
  const before = all.contexts[name];
  writeContexts(io.env, { ...all, current, contexts: { ...all.contexts, [name]: one } });
  if (before !== undefined && before.url !== one.url) await forget(name, before.url, io);
  io.out(`The context ${name} is ${one.url}.${current === name ? " It is the current context." : ""}\n`);
}

async function list({ io }: Run): Promise<void> {
  const { contexts, current } = await readContexts(io.env);
  const names = Object.keys(contexts);
  if (names.length === 0) return io.out("There are no contexts. Add one: muster context add NAME --url URL\n");
  const rows = await Promise.all(
    names.map(async (name) => {
      const one = contexts[name];
      const login = await readLogin(credentialsFile(io.env), loginOf(name, one?.url ?? ""));
      const by = one?.token_file === undefined ? (login === null ? "-" : `login (${login.kind})`) : one.token_file;
      return [name === current ? "*" : " ", name, one?.url ?? "-", by].map(String);
    }),
  );
  io.out(tableText([" ", "NAME", "HUB", "TOKEN"], rows, { headers: true, colours: false }));
}

async function remove(name: string, { io }: Run): Promise<void> {
  const { current, contexts, version } = await known(name, io);
  const { [name]: removed, ...others } = contexts;
  writeContexts(io.env, { version, current: current === name ? null : current, contexts: others });
  await forget(name, removed?.url ?? "", io);
  io.out(`The context ${name} is removed.\n`);
}

/** Removes the login of a context at an address that the context no longer has. */
async function forget(name: string, url: string, { env }: Run["io"]): Promise<void> {
  const file = credentialsFile(env);
  await withLock(file, () => writeLogin(file, loginOf(name, url), null));
}

const withoutLogin = ({ context, url }: InForce): string =>
  context === null && isLoopback(url.value) ? "of the hub on this machine, if there is one" : "none";

/** `muster context show` prints no secret: for a token it prints only where the token comes from. */
async function show(flags: Flags, { io }: Run): Promise<void> {
  const found = await inForce(namedFlags(flags), io.env);
  const login = await readLogin(credentialsFile(io.env), found.login);
  const row = (name: string, from: From | null): string[] => [name, cellOf(from?.value), from?.from ?? "-"];
  const token =
    found.tokenFile !== null
      ? row("token", { value: `in ${found.tokenFile.value}`, from: found.tokenFile.from })
      : found.tokenVariable !== null
        ? ["token", "in the environment", "MUSTER_TOKEN"]
        : [
            "token",
            login === null ? withoutLogin(found) : `login (${login.kind})`,
            login === null ? "default" : found.context === null ? found.login : `context ${found.context.value}`,
          ];
  const rows = [row("context", found.context), row("hub", found.url), row("CA file", found.caFile), token];
  io.out(tableText(["", "VALUE", "FROM"], rows, { headers: true, colours: false }));
}
