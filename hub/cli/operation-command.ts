import { type Asked, askedOf, type Invocation, invocationOf, readArguments } from "./arguments.ts";
import type { Operation } from "./description.ts";
import { Refused, UsageError } from "./errors.ts";
import { withIds } from "./names.ts";
import { plain } from "./output/plain.ts";
import { forPeople, helpText } from "./output.ts";
import { allPages, presentVersion } from "./pages.ts";
import { call, flagText, read, targetOf } from "./request.ts";

async function printStream(response: Response): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) process.stdout.write(decoder.decode(chunk, { stream: true }));
}

/** Runs a command that calls one operation of the API. */
export async function runOperation(
  operation: Operation,
  argv: readonly string[],
  operations: readonly Operation[],
): Promise<void> {
  const given = readArguments(operation, argv);
  if (given.values["help"] === true) return void process.stdout.write(helpText(operation));
  const output = flagText(given.values, "output") ?? "text";
  if (output !== "text" && output !== "json") throw new UsageError("--output takes text or json.");
  const target = await targetOf(given.values, process.env);
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
 * True if the operator asked only for a plan of the change, which the hub then does not carry out. An answer with a plan counts as a success even if
 * the plan says that the hub would refuse parts of the request.
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
