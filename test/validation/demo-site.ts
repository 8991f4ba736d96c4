/** The demo as the site under test. Its first host has a Linux of its own, so that a tenant gets a real account there. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { AllocationDetail } from "../../shared/api/allocations.ts";
import { NodeSummary } from "../../shared/api/nodes.ts";
import { SSH_KEY } from "../support/allocatable-node.ts";
import { HubApi } from "../support/hub-api.ts";
import { until } from "../support/until.ts";

const ADMIN = "/api/v1/admin";
const LONGEST_MS = 900_000;
/** The network of the simulated hosts' first addresses (test/fakes/maas/README.md). */
const HOSTS_NETWORK = "10.81.0.0/22";

export interface DemoSite {
  readonly demo: ChildProcess;
  readonly api: HubApi;
  readonly tokenFile: string;
}

/** Gives this computer the addresses of the simulated hosts, so that they can greet as SSH servers; false if it may not. */
export function addHostAddresses(): boolean {
  try {
    execFileSync("ip", ["route", "replace", "local", HOSTS_NETWORK, "dev", "lo"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
export const removeHostAddresses = (): void =>
  void execFileSync("ip", ["route", "del", "local", HOSTS_NETWORK, "dev", "lo"], { stdio: "ignore" });

/** Starts the demo, and waits until its first host has had a tenant and is clean again. */
export async function startDemo(folder: string, organization: string, ssh: boolean): Promise<DemoSite> {
  const demo = spawn(process.execPath, ["test/demo/main.ts", "--state", folder], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, MUSTER_NICO_ORG: organization, SIM_MAAS_SSH: String(ssh) },
  });
  let told = "";
  demo.stdout?.on("data", (chunk: Buffer) => {
    told += chunk.toString();
    process.stdout.write(chunk);
  });
  await until("the demo", () => /Ctrl-C stops everything/.test(told) || demo.exitCode !== null || undefined, {
    timeoutMs: LONGEST_MS,
    everyMs: 500,
  });
  const [, base] = /API, console +(\S+)/.exec(told) ?? [];
  if (base === undefined || demo.exitCode !== null) throw new Error("The demo has ended; its output says why.");
  if (!/Verified[.]/.test(told)) throw new Error("The demo showed no turnover, so no check could see a cleaning.");
  const tokenFile = join(folder, "hub", "admin-token");
  return { demo, tokenFile, api: new HubApi(base, readFileSync(tokenFile, "utf8").trim()) };
}

export async function stopDemo({ demo }: DemoSite): Promise<void> {
  demo.kill("SIGINT");
  await new Promise((ended) => demo.on("close", ended));
}

/** The nodes of the site in the order of their names. The first is the one with a Linux of its own. */
export const hostsOf = async (api: HubApi): Promise<NodeSummary[]> =>
  (await api.nodes()).toSorted((a, b) => a.hostname.localeCompare(b.hostname));

/** Says in which of three racks each host stands. */
export async function placeHosts(api: HubApi): Promise<void> {
  for (const [index, { id }] of (await hostsOf(api)).entries()) {
    const location = { room: "hall 1", rack: `rack ${index % 3}`, unit: index + 1 };
    await api.patch(NodeSummary, `${ADMIN}/nodes/${id}`, { location });
  }
}

export interface Tenancy {
  readonly allocationId: string;
  readonly nodeId: string;
}

/** Gives the first host to a tenant, and plans a maintenance of it. */
export async function giveToTenant(api: HubApi, tenant: string): Promise<Tenancy> {
  const [first] = await hostsOf(api);
  if (first === undefined) throw new Error("the site has no node");
  const order = { node_id: first.id, tenant, login_user: "grace", ssh_keys: [SSH_KEY] };
  const { id } = await api.call(AllocationDetail, "POST", `${ADMIN}/allocations`, order);
  await untilAllocation(api, id, "active");
  const reason = "A fan is replaced on Monday";
  await api.call(z.unknown(), "POST", `${ADMIN}/nodes/${first.id}/cordon`, { reason });
  return { allocationId: id, nodeId: first.id };
}

/** Ends the tenancy and the maintenance, and waits until the host takes the next tenant. */
export async function takeBack(api: HubApi, { allocationId, nodeId }: Tenancy): Promise<void> {
  const reason = "The first suite is over";
  await api.call(z.unknown(), "POST", `${ADMIN}/nodes/${nodeId}/uncordon`, { reason });
  await api.call(AllocationDetail, "POST", `${ADMIN}/allocations/${allocationId}/release`, { reason });
  await untilAllocation(api, allocationId, "ended");
  await until("the host to take a tenant", async () => (await api.node(nodeId)).schedulable || undefined);
}

const untilAllocation = (api: HubApi, id: string, status: string): Promise<true> =>
  until(`the allocation to be ${status}`, async () => {
    const now = await api.call(AllocationDetail, "GET", `${ADMIN}/allocations/${id}`);
    return now.status === status || undefined;
  });
