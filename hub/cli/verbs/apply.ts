import type { Command } from "commander";
import { PartlyDone } from "../errors.ts";
import { Hub } from "../hub.ts";
import { plain } from "../output/plain.ts";
import { addApproval, addGeneral, approvalOf, type Flags, needed } from "../program/flags.ts";
import type { Run } from "../program/run.ts";
import { endOf, STATUS, type Status } from "../statuses.ts";

const HELP = `
A file has objects of the kinds sku, profile (of a site), policy (of a site) and roce (rows of a site), in YAML or JSON:

  kind: profile
  site: dc1
  name: gold
  turnover_mode: soft_reset

An object is created or updated by its name. Fields that the file leaves out stay as they are, and nothing is deleted.
`;

export function add(apply: Command, run: Run): void {
  apply
    .requiredOption("-f, --file <file>", "the file with the objects; - for standard input")
    .option("--dry-run", "show the differences, and change nothing")
    .addHelpText("after", HELP);
  addApproval(apply);
  addGeneral(apply).action(async (flags: Flags) => {
    run.status = await applyFile(flags, run);
  });
}

/** Applies the objects in their order. The hub's first refusal ends the command, because later objects of the file may need the refused object. */
async function applyFile(flags: Flags, { io }: Run): Promise<Status> {
  const [{ readDocuments }, { changeOf }] = await Promise.all([
    import("../apply/read-documents.ts"),
    import("../apply/apply-object.ts"),
  ]);
  const all = readDocuments(needed(flags, "file"));
  const hub = await Hub.open(flags, io);
  const dry = flags["dryRun"] === true;
  let changed = 0;
  for (const wanted of all) {
    try {
      const change = await changeOf(hub, wanted);
      if (!dry) await change.carryOut(approvalOf(flags));
      if (change.what !== "unchanged") changed += 1;
      const what = dry && change.what !== "unchanged" ? `would be ${change.what}` : change.what;
      io.out(plain([`${wanted.label} ${what}`, ...change.lines, ""].join("\n")));
    } catch (error) {
      const [status, message] = endOf(error);
      io.err(plain(`${wanted.label}: ${message.trimEnd()}\n`));
      return error instanceof PartlyDone || (changed > 0 && !dry) ? STATUS.partly : status;
    }
  }
  return STATUS.done;
}
