import type { Command } from "commander";
import { UsageError } from "../errors.ts";
import { Hub, type Item } from "../hub.ts";
import { Parts } from "../parts.ts";
import { addApproval, addGeneral, approvalOf, type Flags, needed } from "../program/flags.ts";
import type { Run } from "../program/run.ts";
import { STATUS, type Status } from "../statuses.ts";
import { durationOf } from "../wait/duration.ts";

/** The largest number of hosts in one onboarding batch. */
const MOST_HOSTS = 1000;

export function add(onboard: Command, run: Run): void {
  onboard
    .argument("[hosts...]", "hosts as HOSTNAME=BMC-ADDRESS")
    .optionsGroup("Hosts:")
    .option(
      "--file <file>",
      "a CSV file with the columns hostname, ipmi_ip, and also pxe_mac, room, rack, unit; - for standard input",
    )
    .option("--skip-invalid", "send the other rows if some rows have faults")
    .option("--site <name>", "the site (needed)")
    .option("--profile <name>", "the profile (needed)")
    .option("--sku <id>", "the SKU (needed)")
    .option("--stop-after-failures <number>", "pause the batch after so many failed hosts")
    .option("--new", "order a new batch, even if the same hosts were sent in the last 24 hours");
  addApproval(onboard);
  onboard.option("--wait", "wait until each host is in service or has failed, with a line for each change");
  onboard.option("--timeout <time>", "how long to wait", "6h");
  addGeneral(onboard).action(async (hosts: string[], flags: Flags) => {
    run.status = await order(hosts, flags, run);
  });
}

async function order(hosts: readonly string[], flags: Flags, { io }: Run): Promise<Status> {
  const deadlineMs = durationOf(String(flags["timeout"]), "--timeout");
  const [{ HOSTS }, { keyOf, partsOf, rowsOfFile }, { checkWords }] = await Promise.all([
    import("../rows/host-rows.ts"),
    import("../rows/rows-of-file.ts"),
    import("../rows/check-words.ts"),
  ]);
  const file = flags["file"];
  if ((typeof file === "string") === hosts.length > 0)
    throw new UsageError("Name hosts as HOSTNAME=BMC-ADDRESS, or a file by --file.");
  const checked = typeof file === "string" ? await rowsOfFile(HOSTS, file, flags, io) : checkWords(hosts, HOSTS);
  const selectors = {
    site_id: needed(flags, "site"),
    profile_id: needed(flags, "profile"),
    sku_id: needed(flags, "sku"),
  };
  const stop =
    flags["stopAfterFailures"] === undefined ? {} : { stop_after_failures: Number(flags["stopAfterFailures"]) };
  const hub = await Hub.open(flags, io);
  const batches: string[] = [];
  const sent = await new Parts(io).send(partsOf(checked.rows, MOST_HOSTS), async (part) => {
    const body = { ...selectors, nodes: part.map(({ item }) => item), ...stop };
    const key = flags["new"] === true ? {} : { key: keyOf("onboard", body) };
    const { batch_id: batch, onboardings } = await hub.one("createOnboardingBatch", {
      body,
      headers: approvalOf(flags),
      ...key,
    });
    batches.push(String(batch));
    io.out((onboardings as Item[]).map((one) => `onboarding/${one["hostname"]}  ${one["onboarding_id"]}\n`).join(""));
    io.err(`Batch ${batch}: ${part.length} hosts ordered.\n`);
  });
  const left: Status = checked.faults.length > 0 ? STATUS.partly : sent;
  if (flags["wait"] !== true) return left;
  const { followBatches } = await import("../wait/follow-batches.ts");
  const status = await followBatches(hub, batches, { deadlineMs, io });
  return status === STATUS.done ? left : status;
}
