/**
 * The program `muster`, with which operators call a hub. The commands of `muster` are the operations of the hub's API, which `muster` reads from the
 * hub's own API description. Exit status 0 means success, 1 a refusal by the hub, even of only a part, 2 a wrong command line, and 3 an unreachable
 * hub. The command `verify-record` works without a hub, and may also end with exit status 4 (see its help).
 */
import { parseArgs } from "node:util";
import {
  type Asked,
  askedOf,
  COMMON_FLAGS,
  type Invocation,
  invocationOf,
  readArguments,
  UsageError,
} from "./arguments.ts";
import { type Operation, operationsOf } from "./description.ts";
import { DIAGNOSTICS_HELP, writeDiagnostics } from "./diagnostics.ts";
import { withIds } from "./names.ts";
import { forPeople, helpText, overviewText, plain } from "./output.ts";
import { Away, call, DEADLINE_MS, fetchFrom, flagText, Refused, read, type Target, targetOf } from "./request.ts";
import { refuseMistyped } from "./setting-names.ts";

const USAGE = `Usage: muster <command> [arguments] [--flags]
       muster help [command]
       muster diagnostics [--output FILE]   one file for support, without secrets
       muster verify-record FILE            verify a sanitization record offline
       muster login | logout                log in by a browser on any device, or by a token on standard input
       muster audit verify [--file FILE]    verify the audit, in the hub or in an exported file

  --hub URL          the hub; by default MUSTER_URL, else http://127.0.0.1:8480
  --token-file FILE  by default MUSTER_TOKEN_FILE, else your login, else the token of the hub on this machine; MUSTER_TOKEN holds the token itself
  --ca-file FILE     the CA, in PEM, of a hub with https; by default MUSTER_CA_FILE, else the system's CAs
  --output json      the hub's answer unchanged
  --all              all pages of a list
  --if-match ETAG    change only this version; by default the present version
  --approval ID      the approval of a second person, if the hub has asked for one
  A flag's value @FILE means the file's content, so that no secret is on the command line.
`;
/** The commands of the log-in, which need no API description. */
const LOGIN = ["login", "logout"] as const;
const MOST_PAGES = 10_000;
const MOST_NEAR = 5;

/**
 * Returns the present version of the API resource that an operator's command changes. The program `muster` reads the resource's version itself,
 * because an operator at a shell means to change the resource's present state.
 */
async function presentVersion(target: Target, { path }: Invocation): Promise<string> {
  const invocation = { path, query: new URLSearchParams(), body: null };
  const response = await call(target, { method: "GET", invocation });
  return response.headers.get("etag") ?? "";
}

interface Page {
  readonly items?: readonly Record<string, unknown>[];
  readonly next_cursor?: string | null;
}

/** If the API's answer is not a list, `allPages` returns the answer unchanged. */
async function allPages(target: Target, operation: Operation, first: Invocation): Promise<Page> {
  const items: Record<string, unknown>[] = [];
  const query = new URLSearchParams(first.query);
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const response = await call(target, { method: operation.method, invocation: { ...first, query } });
    const answer = (await response.json()) as Page;
    if (answer.items === undefined) return answer;
    items.push(...answer.items);
    if (typeof answer.next_cursor !== "string" || answer.items.length === 0) break;
    query.set("cursor", answer.next_cursor);
  }
  return { items, next_cursor: null };
}

async function printStream(response: Response): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) process.stdout.write(decoder.decode(chunk, { stream: true }));
}

async function run(operation: Operation, argv: readonly string[], operations: readonly Operation[]): Promise<void> {
  const given = readArguments(operation, argv);
  if (given.values["help"] === true) return void process.stdout.write(helpText(operation));
  const output = flagText(given.values, "output") ?? "text";
  if (output !== "text" && output !== "json") throw new UsageError("--output takes text or json.");
  const target = targetOf(given.values);
  const ask = async (list: Operation, asked: Asked) =>
    (await allPages(target, list, invocationOf(list, asked))).items ?? [];
  const note = (text: string): void => void process.stderr.write(`${plain(text)}\n`);
  const asked = await withIds(operation, askedOf(operation, given, read), { operations, ask, note });
  const invocation = invocationOf(operation, asked);
  const print = (answer: unknown): void =>
    void process.stdout.write(output === "json" ? `${JSON.stringify(answer, null, 2)}\n` : forPeople(answer));
  if (given.values["all"] === true) return print(await allPages(target, operation, invocation));
  const version = operation.conditional
    ? (flagText(given.values, "if-match") ?? (await presentVersion(target, invocation)))
    : null;
  const approval = flagText(given.values, "approval");
  if (approval !== undefined && !operation.approvable)
    throw new UsageError(`${operation.command} needs no approval, so it takes no --approval.`);
  const headers = {
    ...(version === null ? {} : { "if-match": version }),
    ...(approval === undefined ? {} : { "muster-approval": approval }),
  };
  const { method, repeatable } = operation;
  const response = await call(target, { method, invocation, headers, repeatable });
  if (response.status === 204) return void (output === "text" && process.stdout.write("Done.\n"));
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("text/event-stream")) return printStream(response);
  if (["text/html", "text/csv", "application/yaml"].some((one) => type.startsWith(one)))
    return void process.stdout.write(await response.text());
  const answer: unknown = await response.json();
  print(answer);
  if (!asksForPlan(invocation)) mustBeWhole(operation, answer);
}

/**
 * True if the operator asked only for a plan. An answer with a plan is a success even if the plan says that the hub would refuse parts of the
 * request.
 */
const asksForPlan = ({ body }: Invocation): boolean =>
  typeof body === "object" && body !== null && "plan" in body && body.plan === true;

/** Throws if the hub's answer says that a part of the request failed, so that an operator's script does not continue after a partial success. */
function mustBeWhole({ failureCounts }: Operation, answer: unknown): void {
  const counts = Object.entries(answer ?? {}).filter(([name, count]) => failureCounts.includes(name) && count > 0);
  if (counts.length === 0) return;
  const told = counts.map(([name, count]) => `${name}: ${count}`).join(", ");
  throw new Refused(`Not everything was done (${told}). The answer shows the result of each part, and the reason.`);
}

async function describe(url: string): Promise<Operation[]> {
  const response = await fetchFrom(url, "/api/v1/openapi.json", { signal: AbortSignal.timeout(DEADLINE_MS) });
  if (!response.ok) throw new Refused(`${url} answered ${response.status}. Check that this is the address of a hub.\n`);
  return operationsOf(await response.json());
}

/** The error for an unknown command suggests commands that contain all words of it, for example `create-maas-site-profile` for `create-profile`. */
function unknownCommand(name: string | undefined, operations: readonly Operation[]): string {
  const asked = (name ?? "").split("-");
  const near = operations
    .map(({ command }) => command)
    .filter((command) => asked.every((word) => command.split("-").includes(word)));
  const advice = near.length === 0 ? "" : ` Did you mean ${near.slice(0, MOST_NEAR).join(", ")}?`;
  return `There is no command ${name}.${advice} See: muster help`;
}

/**
 * Runs the commands `verify-record` and `audit verify`, or shows their help. `runOffline` returns false for every other command, because the other
 * commands of `muster` need a hub.
 */
async function runOffline(argv: readonly string[]): Promise<boolean> {
  const [command, about] = argv;
  if (command === "audit" || (command === "help" && about === "audit")) {
    const { AUDIT_VERIFY_HELP, auditVerify } = await import("./audit-verify.ts");
    if (command === "help" || argv.includes("--help")) process.stdout.write(AUDIT_VERIFY_HELP);
    else await auditVerify(argv, describe);
    return true;
  }
  const asksHelp = command === "help" && about === "verify-record";
  if (command !== "verify-record" && !asksHelp) return false;
  // No other command needs the schemas of a record, with which each start of the program would take a third more processor time.
  const { VERIFY_RECORD_HELP, verifyRecordFiles } = await import("./verify-record.ts");
  if (asksHelp || argv.includes("--help")) process.stdout.write(VERIFY_RECORD_HELP);
  else process.exitCode = verifyRecordFiles(argv.slice(1));
  return true;
}

async function main(argv: readonly string[]): Promise<void> {
  refuseMistyped(process.env);
  if (await runOffline(argv)) return;
  if (LOGIN.some((one) => argv[0] === one || (argv[0] === "help" && argv[1] === one))) {
    const { runLogin } = await import("./login.ts");
    return runLogin(argv);
  }
  const { values, positionals } = parseArgs({
    args: [...argv],
    options: COMMON_FLAGS,
    allowPositionals: true,
    strict: false,
  });
  const [command, about] = positionals;
  if (command === undefined && values["help"] !== true) throw new UsageError(USAGE);
  const operations = await describe(targetOf(values).url);
  if (command === undefined || (command === "help" && about === undefined)) {
    process.stdout.write(`${USAGE}\n${overviewText(operations)}`);
    return;
  }
  const name = command === "help" ? about : command;
  if (name === "diagnostics") {
    if (command === "help" || values["help"] === true) return void process.stdout.write(DIAGNOSTICS_HELP);
    return writeDiagnostics(argv.toSpliced(argv.indexOf(name), 1), operations);
  }
  const operation = operations.find((one) => one.command === name);
  if (operation === undefined) throw new UsageError(unknownCommand(name, operations));
  if (command === "help") return void process.stdout.write(helpText(operation));
  await run(operation, argv.toSpliced(argv.indexOf(command), 1), operations);
}

function explained(error: unknown): readonly [1 | 2 | 3, string] {
  if (error instanceof UsageError) return [2, error.message];
  if (error instanceof Refused) return [1, error.message];
  if (!(error instanceof Error)) return [1, String(error)];
  // The class of the error would load the code of the log-in, which most commands do not need.
  if (error.name === "LoginError") return [1, error.message];
  if (error instanceof Away) return [3, error.message];
  const cut = error.name === "TimeoutError" || error instanceof TypeError;
  return cut
    ? [
        3,
        `The connection to the hub ended before its answer was complete: ${error.message}. Check whether the command took effect, then try again.`,
      ]
    : [1, `The answer could not be read: ${error.message}`];
}

/** The exit status that a shell reports for a program that the signal SIGPIPE ended. */
const ENDED_BY_SIGPIPE = 141;
// The reader of the output may end early, as in `muster list-nodes | head`. Node.js ignores SIGPIPE, so the failed write ends the command instead.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: Error & { readonly code?: string }) => {
    if (error.code === "EPIPE") process.exit(ENDED_BY_SIGPIPE);
    throw error;
  });

try {
  await main(process.argv.slice(2));
} catch (error) {
  const [status, message] = explained(error);
  process.stderr.write(`${message.trimEnd()}\n`);
  process.exitCode = status;
}
