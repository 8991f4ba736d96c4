import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { Authority } from "../../shared/api/authority.ts";
import { SanitizationDetail, SanitizationSummary } from "../../shared/api/sanitization.ts";
import { SanitizationDocument } from "../../shared/sanitization-document.ts";
import type { HubApi } from "../support/hub-api.ts";

const ADMIN = "/api/v1/admin";
const run = promisify(execFile);
const COMMAND_LINE = new URL("../../hub/cli/main.ts", import.meta.url).pathname;
interface Verification {
  readonly api: HubApi;
  readonly stateDir: string;
  readonly tell: (step: string, text: string) => void;
}

/** Exports the node's sanitization records, and verifies the record of the allocation with the offline command `verify-record`. */
export async function verifyRecord(verification: Verification, nodeId: string, allocationId: string): Promise<void> {
  const { api, tell } = verification;
  const records = await api.all(SanitizationSummary, `${ADMIN}/sanitization-records?node_id=${nodeId}`);
  const newest = records.find((one) => one.allocation_id === allocationId);
  if (newest === undefined) throw new Error("The turnover wrote no sanitization record.");
  const { record } = await api.call(SanitizationDetail, "GET", `${ADMIN}/sanitization-records/${newest.record_id}`);
  for (const { step, target, evidence } of record.tasks.flatMap(({ steps }) => steps)) {
    if (step === "processes")
      tell("removed", `processes of ${target}: ${evidence["found"]} found, ${evidence["survivors"]} left`);
    if (step === "temporary" && evidence["files"] !== 0) tell("removed", `files in ${target}: ${evidence["files"]}`);
  }
  const files = await exportAll(verification, records);
  const { current } = await api.call(Authority, "GET", `${ADMIN}/authority`);
  const file = files.get(newest.record_id) ?? "";
  const chain = [...files.values()].filter((one) => one !== file).flatMap((one) => ["--chain", one]);
  const words = ["verify-record", file, ...chain, `--order-key=${current.order_key}`];
  const { stdout } = await run(process.execPath, [COMMAND_LINE, ...words]).catch((error: unknown) => {
    const { code, stdout: told, stderr } = error as { code: number; stdout: string; stderr: string };
    throw new Error(`verify-record ended with ${code}: ${told}${stderr}`);
  });
  const [told = "", signed = "", ...more] = stdout.trim().split("\n");
  for (const line of [told, signed.trim(), more.at(-1) ?? ""]) tell("record", line);
  tell("verify", `npm run -s muster -- ${words.join(" ")}`);
}

async function exportAll(
  { api, stateDir }: Verification,
  records: readonly SanitizationSummary[],
): Promise<ReadonlyMap<string, string>> {
  const folder = join(stateDir, "records");
  mkdirSync(folder, { recursive: true });
  const files = new Map<string, string>();
  for (const { record_id, hostname, sequence } of records) {
    const document = await api.call(SanitizationDocument, "GET", `${ADMIN}/sanitization-records/${record_id}/export`);
    const file = join(relative(process.cwd(), folder), `${hostname}-${sequence}.json`);
    writeFileSync(file, JSON.stringify(document));
    files.set(record_id, file);
  }
  return files;
}
