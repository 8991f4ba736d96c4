/** Turns one host over after a tenant, from the tenant's allocation to the verified sanitization record. */
import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import { Allocation, AllocationDetail } from "../../shared/api/allocations.ts";
import { Baseline } from "../../shared/api/baselines.ts";
import { DecommissionDetail } from "../../shared/api/decommissions.ts";
import type { NodeSummary } from "../../shared/api/nodes.ts";
import { compareResidue } from "../../shared/residue/compare.ts";
import { RESIDUE_ITEM_NAMES } from "../../shared/residue/items.ts";
import { ResidueSnapshot } from "../../shared/residue/snapshot.ts";
import type { HubApi } from "../support/hub-api.ts";
import { until } from "../support/until.ts";
import { HostShell } from "./host-shell.ts";
import { verifyRecord } from "./verify-record.ts";

const TENANT = "acme";
const LOGIN_USER = "ada";
const FILE = "/tmp/model.bin";
const COMMAND = "sleep 3600";
const ADMIN = "/api/v1/admin";
/**
 * The pause, in milliseconds, between two reads of a host state that changes by itself. The demo pauses shorter than the agent does, because it reads
 * the host only to show what the tenant left.
 */
const PAUSE_MS = 300;

export interface Turnover {
  readonly api: HubApi;
  readonly hostname: string;
  readonly stateDir: string;
  /** Prints one line about a step of the turnover. Of several lines about a step of the turnover, only the first line has the step's name. */
  readonly tell: (step: string, text: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Turns the host over, or tells why this computer does not allow the turnover. Throws if the node is not active after the turnover, or if the
 * sanitization record is not in order.
 */
export async function turnOver(turnover: Turnover): Promise<void> {
  const { api, hostname, tell } = turnover;
  const node = (await api.nodes()).find((one) => one.hostname === hostname);
  if (node === undefined) throw new Error(`There is no node ${hostname}.`);
  const baseline = await readBaseline(turnover, node);
  if (baseline === null) return;
  const allocation = await allocate(turnover, node);
  const uid = await readUid(turnover, allocation);
  tell("allocated", `to the tenant ${TENANT}; the agent has made the account ${LOGIN_USER} with uid ${uid}`);
  if (allocation.status === "active") {
    await leaveTraces(turnover, uid);
    await showFindings(turnover, baseline, uid);
    await waitFor(turnover, "the release of the allocation", () =>
      api.call(AllocationDetail, "POST", `${ADMIN}/allocations/${allocation.id}/release`, {
        reason: "The tenant left",
      }),
    );
    tell("released", "the allocation ends, and the hub has the host's agent clean the host");
  }
  await showCleaning(turnover, allocation.id);
  await verifyRecord(turnover, node.id, allocation.id);
}

/** `look` may throw while a process of the demo restarts, so `waitFor` calls `look` until it returns a value. */
const waitFor = <T>({ signal }: Turnover, what: string, look: () => Promise<T | undefined>): Promise<T> =>
  until(what, look, { everyMs: 200, signal });

/** Returns the host's baseline, or null if the agent could not read a part of the host, because the turnover would fail. */
async function readBaseline(turnover: Turnover, node: NodeSummary): Promise<ResidueSnapshot | null> {
  const baseline = await waitFor(turnover, `the baseline of ${node.hostname}`, async () => {
    const now = await turnover.api.call(Baseline, "GET", `${ADMIN}/nodes/${node.id}/baseline`);
    return now.state === "taken" ? now : undefined;
  });
  const [unread] = baseline.unreadable;
  if (unread === undefined) return ResidueSnapshot.parse(baseline.snapshot);
  turnover.tell(
    "not shown",
    `the agent cannot read ${unread.item}, so no check could find the host clean: ${unread.reason}`,
  );
  return null;
}

/** Allocates the node, or continues the allocation that an earlier run of the demo began. */
async function allocate(turnover: Turnover, node: NodeSummary): Promise<Allocation> {
  const { api } = turnover;
  const request = { node_id: node.id, tenant: TENANT, login_user: LOGIN_USER, ssh_keys: [newSshKey()] };
  const allocation = await waitFor(turnover, "the tenant's account", async () => {
    const all = await api.all(Allocation, `${ADMIN}/allocations?node_id=${node.id}`);
    const open = all.find(({ status }) => status !== "ended");
    if (open === undefined) await api.call(AllocationDetail, "POST", `${ADMIN}/allocations`, request);
    return open === undefined || open.status === "granting" ? undefined : open;
  });
  if (allocation.status === "failed") throw new Error(`${allocation.error_message} Next: ${allocation.next_action}`);
  return allocation;
}

/** Makes an SSH public key. Nobody keeps the private key, because the demo's tenant logs in without SSH. */
function newSshKey(): string {
  const { x = "" } = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
  const parts = [Buffer.from("ssh-ed25519"), Buffer.from(x, "base64url")];
  const wire = parts.flatMap((part) => [Buffer.from([0, 0, 0, part.length]), part]);
  return `ssh-ed25519 ${Buffer.concat(wire).toString("base64")} ${LOGIN_USER}@${TENANT}`;
}

const GrantTask = z.object({ result: z.object({ uid: z.int() }) });
const readUid = (turnover: Turnover, { grant_task_id }: Allocation): Promise<number> =>
  waitFor(turnover, "the uid of the tenant's account", async () => {
    const { result } = await turnover.api.call(GrantTask, "GET", `${ADMIN}/tasks/${grant_task_id}`);
    return result.uid;
  });

const shellOf = ({ stateDir, hostname }: Turnover): HostShell => new HostShell(join(stateDir, "hosts", hostname));

async function leaveTraces(turnover: Turnover, uid: number): Promise<void> {
  const script = `echo "weights of a model" >${FILE}; ${COMMAND} </dev/null >/dev/null 2>&1 & echo $!`;
  const pid = await waitFor(turnover, "the host", async () => (await shellOf(turnover).sh(uid, script)).trim());
  turnover.tell("left", `${LOGIN_USER} leaves the file ${FILE} and the process ${pid} (${COMMAND})`);
}

/** Reads the host as the agent's task `node.validate_clean` does, and shows the differences from the baseline as the hub sees them. */
async function showFindings(turnover: Turnover, baseline: ResidueSnapshot, uid: number): Promise<void> {
  const tenant = { login_user: LOGIN_USER, uid };
  const order = { root: "/", tenant, items: RESIDUE_ITEM_NAMES, pauseMs: PAUSE_MS };
  const told = await shellOf(turnover).program("agent/system/residue/main.ts", JSON.stringify(order));
  const lines = told.trim().split("\n");
  const Line = z.object({ item: z.string(), reading: z.unknown() });
  const readings = lines.map((line) => Line.parse(JSON.parse(line)));
  const snapshot = ResidueSnapshot.parse(Object.fromEntries(readings.map(({ item, reading }) => [item, reading])));
  const judged = Object.entries(compareResidue(baseline, snapshot, tenant).items);
  for (const [item, one] of judged)
    if (one.state === "found") turnover.tell("findings", `${item}: ${one.found.map(({ name }) => name).join(", ")}`);
    else if (one.state === "unreadable") turnover.tell("findings", `${item}: unreadable, ${one.reason}`);
}

async function showCleaning(turnover: Turnover, allocationId: string): Promise<void> {
  const { api, tell } = turnover;
  const shown = new Set<string>();
  const failed = await waitFor(turnover, "the end of the cleaning", async () => {
    const allocation = await api.call(AllocationDetail, "GET", `${ADMIN}/allocations/${allocationId}`);
    const path = `${ADMIN}/decommissions/${allocation.decommission_id}`;
    const { events, ...now } = await api.call(DecommissionDetail, "GET", path);
    for (const { id, stage, status, message } of events) {
      if (shown.has(id) || status === "started" || status === "waiting") continue;
      shown.add(id);
      tell("cleaning", `${stage.padEnd(20)} ${status === "succeeded" ? message : `${status}: ${message}`}`);
    }
    if (now.status.startsWith("failed")) return `${now.error_message} Next: ${now.next_action}`;
    return allocation.status === "ended" ? "" : undefined;
  });
  if (failed !== "") throw new Error(failed);
}
