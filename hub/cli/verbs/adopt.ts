import type { Command } from "commander";
import { UsageError } from "../errors.ts";
import { Hub, type Item } from "../hub.ts";
import { NOUNS } from "../nouns/index.ts";
import { cellOf } from "../output/cells.ts";
import { hasColours } from "../output/print.ts";
import { tableText } from "../output/table.ts";
import { addApproval, addGeneral, approvalOf, type Flags, needed } from "../program/flags.ts";
import type { Run } from "../program/run.ts";
import { STATUS, type Status } from "../statuses.ts";
import { durationOf } from "../wait/duration.ts";

/** The largest number of machines in one request to adopt machines. */
const MOST_MACHINES = 2000;

export function add(adopt: Command, run: Run): void {
  adopt
    .argument("<site>", "the site whose machines become nodes")
    .argument("[hosts...]", "hostnames of machines in MAAS")
    .optionsGroup("Machines:")
    .option("--file <file>", "a CSV file with the columns hostname or system_id; - for standard input")
    .option("--skip-invalid", "send the other rows if some rows have faults")
    .option("--sku <id>", "the SKU of the machines (needed)")
    .option("--profile <name>", "the profile of the nodes; by default that of the site")
    .option("--accept <kinds>", "kinds of differences to accept, separated by commas (docs/adoption.md)")
    .option("--plan", "only say which machines would become nodes, and how they differ");
  addApproval(adopt);
  adopt.option("--wait", "wait until each adopted node is active, with a line for each change");
  adopt.option("--timeout <time>", "how long to wait", "6h");
  addGeneral(adopt).action(async (site: string, hosts: string[], flags: Flags) => {
    run.status = await order(site, hosts, flags, run);
  });
}

async function order(site: string, hosts: readonly string[], flags: Flags, { io }: Run): Promise<Status> {
  const deadlineMs = durationOf(String(flags["timeout"]), "--timeout");
  const named = await machinesOf(hosts, flags, io);
  const fixed = {
    sku_id: needed(flags, "sku"),
    ...(typeof flags["profile"] === "string" ? { profile_id: flags["profile"] } : {}),
    ...(typeof flags["accept"] === "string" ? { accept_differences: flags["accept"].split(",") } : {}),
    plan: flags["plan"] === true,
  };
  const hub = await Hub.open(flags, io);
  const machines: Item[] = [];
  for (let at = 0; at < named.items.length; at += MOST_MACHINES) {
    const part = named.items.slice(at, at + MOST_MACHINES);
    const body = {
      ...fixed,
      hostnames: part.flatMap(({ hostname }) => hostname ?? []),
      system_ids: part.flatMap(({ system_id }) => system_id ?? []),
    };
    const answer = await hub.one("adoptMachines", { words: { id: site }, body, headers: approvalOf(flags) });
    machines.push(...(answer["machines"] as Item[]));
    io.err(`${machines.length} of ${named.items.length} machines ${flags["plan"] === true ? "judged" : "handled"}.\n`);
  }
  io.out(
    tableText(["HOSTNAME", "MACHINE", "OUTCOME", "WHY"], machines.map(rowOf), {
      headers: true,
      colours: hasColours("auto", io),
    }),
  );
  const refused = machines.filter((one) => one["outcome"] === "refused").length;
  const left = refused === machines.length ? STATUS.refused : refused + named.faults > 0 ? STATUS.partly : STATUS.done;
  const ids = machines.flatMap((one) => (typeof one["node_id"] === "string" ? [one["node_id"]] : []));
  if (flags["wait"] !== true || flags["plan"] === true || ids.length === 0) return left;
  const [{ goalOf }, { waitFor }] = await Promise.all([import("../wait/goal.ts"), import("../wait/wait-for.ts")]);
  const goal = goalOf(NOUNS.nodes, "status=active");
  const status = await waitFor({ noun: NOUNS.nodes, names: ids, goal, deadlineMs, flags, io });
  return status === STATUS.done ? left : status;
}

interface Named {
  readonly items: readonly { readonly hostname?: string; readonly system_id?: string }[];
  readonly faults: number;
}

async function machinesOf(hosts: readonly string[], flags: Flags, io: Run["io"]): Promise<Named> {
  const file = flags["file"];
  if ((typeof file === "string") === hosts.length > 0)
    throw new UsageError("Name machines by their hostnames, or a file by --file.");
  if (typeof file !== "string") return { items: hosts.map((hostname) => ({ hostname })), faults: 0 };
  const [{ MACHINES }, { rowsOfFile }] = await Promise.all([
    import("../rows/machine-rows.ts"),
    import("../rows/rows-of-file.ts"),
  ]);
  const { rows, faults } = await rowsOfFile(MACHINES, file, flags, io);
  return { items: rows.map(({ item }) => item as Named["items"][number]), faults: faults.length };
}

/** Returns the table row of a machine that `muster adopt` named: its outcome, and the refusals and differences that explain it. */
function rowOf(machine: Item): string[] {
  const texts = (list: unknown, name: string): string[] =>
    ((list ?? []) as Item[]).map((one) => `${one[name]}: ${one["message"]}`);
  const why = [...texts(machine["refusals"], "code"), ...texts(machine["differences"], "kind")].join("; ");
  return [machine["hostname"], machine["system_id"], machine["outcome"], why].map(cellOf);
}
