import type { z } from "zod";
import type { ExternalFinding, ExternalInventory } from "../../../shared/api/external-attempts.ts";
import type { ExternalAttemptId } from "../../../shared/ids.ts";
import { newestAttempts, nodesOfProvisioner } from "../../db/queries/external-attempts.ts";
import type { Tx } from "../../db/tx.ts";
import { ABOUT_FINDING, compareHost, REPORT_OF_FINDING } from "./compare-inventory.ts";
import { reportAttempt } from "./report-attempt.ts";

interface Compared {
  readonly hostname: string;
  readonly finding: ExternalFinding;
  readonly attempt_id: ExternalAttemptId | null;
  readonly applied: boolean;
  readonly message: string;
  readonly next_action: string | null;
}

/**
 * Compares the hosts of an external system with the nodes that the hub knows, host by host. With `apply`, the hub records a completion or failure of
 * a provisioning attempt that it has not heard of, if the caller holds the attempt. Nothing else changes. A list of hosts from an external system
 * says something about a host that it does not name only if the list is marked as `whole`.
 */
export async function reconcileInventory(
  tx: Tx,
  { provisioner, site_id, hosts, whole, apply }: z.output<typeof ExternalInventory>,
  caller: string,
): Promise<Compared[]> {
  const names = hosts.map(({ hostname }) => hostname);
  const nodes = await nodesOfProvisioner(tx, site_id, provisioner, names);
  const known = new Map(nodes.map((node) => [node.hostname, node]));
  const attempts = await newestAttempts(
    tx,
    nodes.map(({ id }) => id),
  );
  const said = new Map(hosts.map((host) => [host.hostname, host]));
  const found: Compared[] = [];
  for (const hostname of new Set([...names, ...(whole ? known.keys() : [])])) {
    const node = known.get(hostname);
    const host = said.get(hostname);
    const attempt = node === undefined ? undefined : attempts.get(node.id);
    const finding = compareHost(
      host?.state ?? "absent",
      node === undefined ? null : { mode: node.onboardingMode, attempt: attempt?.state ?? null },
    );
    const isMine = attempt?.holder === caller;
    const applied = apply && isMine && attempt !== undefined && (await record(tx, finding, attempt.id, host, caller));
    const { message, next } = ABOUT_FINDING[finding];
    const foreign =
      apply && !isMine && finding in REPORT_OF_FINDING ? `, but ${attempt?.holder} holds the attempt` : "";
    const about = { hostname, finding, attempt_id: attempt?.id ?? null };
    found.push({ ...about, applied, message: `${message}${foreign}`, next_action: applied ? null : next });
  }
  return found;
}

async function record(
  tx: Tx,
  finding: ExternalFinding,
  id: ExternalAttemptId,
  host: z.output<typeof ExternalInventory>["hosts"][number] | undefined,
  caller: string,
): Promise<boolean> {
  if (finding === "completion_unheard")
    await reportAttempt(tx, id, { kind: "complete", facts: host?.facts ?? {} }, caller);
  else if (finding === "failure_unheard")
    await reportAttempt(
      tx,
      id,
      { kind: "fail", code: "reconciled_failure", message: "The external system says that it failed" },
      caller,
    );
  else return false;
  return true;
}
