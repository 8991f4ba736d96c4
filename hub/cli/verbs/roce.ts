import type { Command } from "commander";
import { Hub, type Item } from "../hub.ts";
import { plain } from "../output/plain.ts";
import { Parts } from "../parts.ts";
import { addGeneral, type Flags, needed } from "../program/flags.ts";
import type { Run } from "../program/run.ts";
import { STATUS, type Status } from "../statuses.ts";

/** The largest number of rows of a file in one request; the file is sent in several requests, so that a person sees how far the import is. */
const MOST_ROWS = 500;

export function add(roce: Command, run: Run): void {
  const command = roce
    .command("import")
    .summary("Write the RoCE rows of a CSV file")
    .description("Write the RoCE rows of a CSV file");
  command
    .argument("<site>", "the site of the hosts")
    .requiredOption("--file <file>", "a CSV file with the columns hostname, interface, ipv4_cidr; - for standard input")
    .option("--skip-invalid", "send the other rows if some rows have faults")
    .option("--dry-run", "check the rows and send nothing");
  addGeneral(command).action(async (site: string, flags: Flags) => {
    run.status = await importRows(site, flags, run);
  });
}

async function importRows(site: string, flags: Flags, { io }: Run): Promise<Status> {
  const [{ ROCE_ROWS }, { partsOf, rowsOfFile }] = await Promise.all([
    import("../rows/roce-rows.ts"),
    import("../rows/rows-of-file.ts"),
  ]);
  const file = needed(flags, "file");
  const checked = await rowsOfFile(ROCE_ROWS, file, flags, io);
  if (flags["dryRun"] === true) return checked.faults.length === 0 ? STATUS.done : STATUS.partly;
  const hub = await Hub.open(flags, io);
  const counts = new Map<string, number>();
  let sent = 0;
  const end = await new Parts(io).send(partsOf(checked.rows, MOST_ROWS), async (part) => {
    const body = { items: part.map(({ item }) => item) };
    const answer = await hub.one("upsertRoceAssignments", { words: { id: site }, body });
    for (const { index, outcome, message } of answer["items"] as Item[]) {
      counts.set(String(outcome), (counts.get(String(outcome)) ?? 0) + 1);
      if (outcome === "failed") io.err(`${plain(`${file}:${part[Number(index)]?.line}: ${message}`)}\n`);
    }
    sent += part.length;
    io.err(`${sent} of ${checked.rows.length} rows sent.\n`);
  });
  io.out(
    ["created", "updated", "unchanged", "failed"]
      .map((outcome) => `${outcome.padEnd(9)}  ${counts.get(outcome) ?? 0}\n`)
      .join(""),
  );
  const failed = counts.get("failed") ?? 0;
  if (failed === sent) return STATUS.failed;
  return failed + checked.faults.length > 0 ? STATUS.partly : end;
}
