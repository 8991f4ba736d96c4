import type { Command } from "commander";
import { Hub, type Item } from "../hub.ts";
import { NOUNS } from "../nouns/index.ts";
import { operationNamed } from "../operation.ts";
import { plain } from "../output/plain.ts";
import { addApproval, addBodyField, addGeneral, approvalOf, bodyOf, type Flags } from "../program/flags.ts";
import { nounCommand } from "../program/noun-command.ts";
import type { Run } from "../program/run.ts";
import { endOf, STATUS, type Status } from "../statuses.ts";
import { shippedOperations } from "../table/shipped.ts";
import { durationOf } from "../wait/duration.ts";
import { ACTS, type Act, type ActName } from "./acts.ts";

/**
 * Returns the function that adds the sub-commands of a verb that changes objects: one for each kind of object, with the fields of the API request as
 * flags.
 */
export const addAct =
  (name: ActName) =>
  (verb: Command, run: Run): void => {
    for (const act of ACTS[name]) {
      const { noun, operation } = act;
      const { summary, body, approvable } = operationNamed(operation, shippedOperations());
      const command = nounCommand(verb, noun).description(summary).argument("<names...>", "names or ids");
      command.optionsGroup("What:");
      for (const field of body ?? []) addBodyField(command, field);
      if (approvable) addApproval(command);
      command.option("--wait", "wait for the end of the work, with a line for each change");
      command.option("--timeout <time>", "how long to wait", "6h");
      addGeneral(command).action(async (names: string[], flags: Flags) => {
        run.status = await actOnAll(name, act, names, flags, run);
      });
    }
  };

async function actOnAll(name: string, act: Act, names: readonly string[], flags: Flags, { io }: Run): Promise<Status> {
  const { noun, operation: id } = act;
  const operation = operationNamed(id, shippedOperations());
  const deadlineMs = durationOf(String(flags["timeout"]), "--timeout");
  const body = bodyOf(operation.body ?? [], flags);
  const hub = await Hub.open(flags, io);
  const [field] = operation.arguments;
  const ordered: { readonly name: string; readonly answer: Item }[] = [];
  const ends: Status[] = [];
  for (const one of names) {
    try {
      const answer = await hub.one(id, { words: { [field?.name ?? "id"]: one }, body, headers: approvalOf(flags) });
      ordered.push({ name: one, answer });
      const work = answer["decommission_id"] ?? answer["onboarding_id"];
      io.out(`${plain(`${noun.singular}/${one}  ${name}  ${work ?? answer["status"] ?? "done"}`)}\n`);
    } catch (error) {
      const [status, message] = endOf(error);
      if (names.length === 1) throw error;
      ends.push(status);
      io.err(`${plain(`${one}: ${message.trimEnd()}`)}\n`);
    }
  }
  const left: Status =
    ends.length === 0 ? STATUS.done : ordered.length === 0 ? (ends[0] ?? STATUS.failed) : STATUS.partly;
  if (flags["wait"] !== true || ordered.length === 0) return left;
  const status = await waitForAll(name, act, ordered, { deadlineMs, flags, io });
  return status === STATUS.done ? left : status;
}

/** Waits for the operations that the hub has begun; a change that needs no operation is done already. */
async function waitForAll(
  name: string,
  { noun }: Act,
  ordered: readonly { readonly name: string; readonly answer: Item }[],
  { deadlineMs, flags, io }: { readonly deadlineMs: number; readonly flags: Flags; readonly io: Run["io"] },
): Promise<Status> {
  const [{ goalOf }, { waitFor }] = await Promise.all([import("../wait/goal.ts"), import("../wait/wait-for.ts")]);
  const of =
    noun === NOUNS.onboardings
      ? NOUNS.onboardings
      : noun === NOUNS.allocations
        ? NOUNS.allocations
        : NOUNS.decommissions;
  const ids = ordered.flatMap(({ answer }) => {
    const id = answer[of.id];
    return typeof id === "string" ? [id] : [];
  });
  if (ids.length === 0) return STATUS.done;
  // A command that cancels work waits until the work has the status `cancelled`.
  const end = of === NOUNS.allocations ? "status=ended" : name === "cancel" ? "status=cancelled" : "done";
  const goal = goalOf(of, end);
  return waitFor({ noun: of, names: ids, goal, deadlineMs, flags, io });
}
