import { randomUUID } from "node:crypto";
import { createMaasClient } from "../../hub/maas/client.ts";
import { wordOf } from "../../hub/watcher/plan.ts";
import { type NodeId, SiteId } from "../../shared/ids.ts";
import { MAAS_STATUS } from "../../shared/maas-status.ts";
import { Secret } from "../../shared/secret.ts";
import type { MaasSimulator } from "../fakes/maas/simulator.ts";
import { bmcAddress, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../fakes/maas/state/site.ts";
import { makeSchedulable, SSH_KEY } from "./allocatable-node.ts";
import { type ApiHarness, type SeededApi, SITE_BODY, seedApi } from "./api-harness.ts";
import { endCleaning } from "./end-cleaning.ts";
import { addMachine, addNodeInService, retireNode } from "./site-nodes.ts";
import { storeUnsignedRecord } from "./unsigned-record.ts";
import { addWaitingApproval } from "./waiting-approval.ts";
import { HOOKS, newSecret } from "./webhook-receiver.ts";

export const ADMIN = "/api/v1/admin";
const REASON = { reason: "a test" };

interface Host {
  readonly hostname: string;
  readonly ipmi_ip: string;
}

/** Creates the objects that a request to a writing route needs. No two test cases of writing routes share an object. */
export class WriteWorld {
  readonly api: ApiHarness;
  readonly region: MaasSimulator;
  #made = 0;

  constructor(api: ApiHarness, region: MaasSimulator) {
    this.api = api;
    this.region = region;
  }

  /** Returns a number that no earlier call has returned. */
  number(): number {
    this.#made += 1;
    return this.#made;
  }

  name(): string {
    return `w${this.number()}`;
  }

  host(): Host {
    const n = this.number();
    return { hostname: `h${n}`, ipmi_ip: `10.9.${n >> 8}.${n & 255}` };
  }

  async make(path: string, body?: object): Promise<ApiAnswerBody> {
    const answer = await this.api.ask("POST", `${ADMIN}${path}`, body);
    if (answer.status >= 300) throw new Error(`POST ${path} prepares nothing: ${JSON.stringify(answer.problem)}`);
    return answer.body;
  }

  async query(text: string, values: readonly unknown[]): Promise<void> {
    await this.api.database.database.pool.query(text, [...values]);
  }

  /** Creates a session of a person on the operators' page, and returns the session's id. */
  async session(): Promise<string> {
    const { pool } = this.api.database.database;
    const { rows } = await pool.query<{ id: string }>(
      `insert into page_sessions (id_sha256, subject, name, address, user_agent, expires_at)
        values ($1, 'ann', 'oidc:ann', '127.0.0.1', 'a browser', now() + interval '1 hour') returning id`,
      [this.name()],
    );
    return rows[0]?.id ?? "";
  }

  site(): Promise<SeededApi> {
    return seedApi(this.api, this.name());
  }

  /**
   * Creates the site of the simulated MAAS region with a MAAS token. The watch row of the created site names the region's newest event, as if a
   * watcher had read all events.
   */
  /** Writes what the hub's watcher stores of a machine that MAAS has deployed, and returns the machine's system id. */
  async runningMachine(siteId: string): Promise<string> {
    const systemId = this.name();
    const details = { tags: [], pool: "", zone: "", macs: ["b8:59:9f:00:00:01"], hardware_uuid: "u", serial: null };
    const image = { architecture: "amd64/generic", osystem: "ubuntu", distro_series: "noble", ephemeral: false };
    await this.query(
      `insert into maas_machines (site_id, system_id, hostname, status, status_name, status_message, error_description, power_state, owner,
         locked, ip_addresses, enable_hw_sync, last_sync, sync_interval_seconds, details)
       values ($1, $2, $2, 6, 'Deployed', '', '', 'on', 'admin', false, '{}', true, now(), 900, $3)`,
      [siteId, systemId, JSON.stringify({ ...details, ...image, cpu_count: 8, memory_mib: 1024 })],
    );
    await this.query(
      "insert into maas_site_watches (site_id, last_poll_at) values ($1, now()) on conflict (site_id) do update set last_poll_at = now()",
      [siteId],
    );
    return systemId;
  }

  async manualNodeAtSite(): Promise<{ siteId: string; profileId: string; nodeId: string }> {
    const { siteId, profileId, skuId } = await this.site();
    const host = { hostname: this.name(), sku_id: skuId, region_code: "r1", site_id: siteId };
    const body = { onboarding_mode: "manual", ...host };
    return { siteId, profileId, nodeId: (await this.make("/nodes", body)).node_id };
  }

  /** A node of manual mode that a request has bound to its machine. */
  async boundNode(): Promise<string> {
    const { siteId, profileId, nodeId } = await this.manualNodeAtSite();
    await this.query("update nodes set status = 'active', onboarding_mode = 'adopted' where id = $1", [nodeId]);
    await this.query(
      `insert into node_adoptions (node_id, site_id, profile_id, adopted_by, past_unknown, was_manual, differences)
         values ($1, $2, $3, 'admin', false, true, '[]')`,
      [nodeId, siteId, profileId],
    );
    await this.query(
      "insert into node_maas_state (node_id, site_id, maas_system_id, ipmi_ip) values ($1, $2, $3, '10.0.0.1')",
      [nodeId, siteId, await this.runningMachine(siteId)],
    );
    return nodeId;
  }

  async siteOfRegion(): Promise<string> {
    const { url, apiKey, sim } = this.region;
    // A region belongs to one site, so a site that an earlier case made for the region gets another address.
    await this.query("update maas_sites set api_base_url = 'http://left.example/' || id where api_base_url ~ $1", [
      `:${new URL(url).port}/`,
    ]);
    await this.query(
      "delete from maas_site_watches w using maas_sites s where s.id = w.site_id and s.api_base_url ~ $1",
      ["^http://left.example/"],
    );
    const { id } = await this.make("/maas-sites", { ...SITE_BODY, name: this.name(), api_base_url: url });
    await this.make(`/maas-sites/${id}/credentials`, { maas_token: apiKey });
    const client = createMaasClient({ baseUrl: url, apiKey: new Secret(apiKey) });
    const power = { address: bmcAddress(1), user: SITE_BMC_USER, pass: new Secret(SITE_BMC_PASSWORD) };
    const { systemId } = await client.createMachine({
      hostname: `seen${this.number()}`,
      architecture: "amd64/generic",
      power,
    });
    sim.region.event(sim.region.machine(systemId), "DEBUG", "Node changed", "by somebody");
    const [newest] = await client.events({ limit: 1 });
    if (newest === undefined) throw new Error("the simulated region has no event");
    await this.query("insert into maas_site_watches (site_id, event_cursor, event_mark) values ($1, $2, $3)", [
      id,
      newest.id,
      wordOf(newest),
    ]);
    return id;
  }

  async profile(): Promise<{ readonly id: string; readonly profile_id: string }> {
    const { siteId } = await this.site();
    const { id } = await this.make(`/maas-sites/${siteId}/profiles`, { name: "second" });
    return { id: siteId, profile_id: id };
  }

  async override(): Promise<{ readonly id: string; readonly override_id: string }> {
    const { siteId } = await this.site();
    const login = { selector_type: "hostname", selector_value: this.host().hostname, user: "root", pass: "calvin" };
    const { id } = await this.make(`/maas-sites/${siteId}/power-credential-overrides`, login);
    return { id: siteId, override_id: id };
  }

  async onboardingSelectors(): Promise<object> {
    const { siteId, profileId, skuId } = await this.site();
    return { site_id: siteId, profile_id: profileId, sku_id: skuId };
  }

  async failedOnboarding(): Promise<string> {
    const { onboarding_id: id } = await this.make("/onboardings", {
      ...(await this.onboardingSelectors()),
      ...this.host(),
    });
    return this.#failed(id);
  }

  async batch(): Promise<{ readonly batchId: string; readonly onboardings: readonly string[] }> {
    const nodes = [this.host(), this.host()];
    const body = await this.make("/onboardings/batch", { ...(await this.onboardingSelectors()), nodes });
    const onboardings = body.onboardings.map((one: { onboarding_id: string }) => one.onboarding_id);
    return { batchId: body.batch_id, onboardings };
  }

  async failedBatch(): Promise<string> {
    const { batchId, onboardings } = await this.batch();
    for (const id of onboardings) await this.#failed(id);
    return batchId;
  }

  async drainBatchRequest(): Promise<object> {
    const siteId = SiteId.parse((await this.site()).siteId);
    await this.api.database.database.inTx(async (tx) => {
      for (const { hostname } of [this.host(), this.host()]) await addNodeInService(tx, { siteId, hostname });
    });
    return {
      site_id: siteId,
      operation: { mode: "drain", ...REASON },
      filter: { status: "active" },
      expected_count: 2,
    };
  }

  async drainBatch(): Promise<{ readonly batchId: string; readonly decommissions: readonly string[] }> {
    const body = await this.make("/decommissions/batch", await this.drainBatchRequest());
    const decommissions = body.decommissions.map((one: { decommission_id: string }) => one.decommission_id);
    return { batchId: body.batch_id, decommissions };
  }

  async failedDrainBatch(): Promise<string> {
    const { batchId, decommissions } = await this.drainBatch();
    for (const id of decommissions) await this.#failed(id);
    return batchId;
  }

  /** Creates an active node with a deployed machine, and with drift as the reconciler would find it. */
  async node(drift: Parameters<typeof addMachine>[2] = { status: MAAS_STATUS.deployed }): Promise<NodeId> {
    const siteId = SiteId.parse((await this.site()).siteId);
    const { hostname } = this.host();
    return this.api.database.database.inTx(async (tx) => {
      const nodeId = await addNodeInService(tx, { siteId, hostname });
      await addMachine(tx, { siteId, hostname, nodeId }, drift);
      return nodeId;
    });
  }

  async retiredNode(): Promise<NodeId> {
    const id = await this.node();
    await this.api.database.database.inTx((tx) => retireNode(tx, id));
    return id;
  }

  /** Creates a retired node with a completed onboarding, from which the site knows the profile of the node's machine. */
  async onboardedRetiredNode(): Promise<NodeId> {
    const id = await this.retiredNode();
    await this.#onboard(id);
    return id;
  }

  async #onboard(id: string): Promise<void> {
    const onboarding = randomUUID();
    await this.query(
      `insert into workflows (id, kind, status, stage, input) values ($1, 'onboard', 'completed', 'wait_for_agent_enrollment', '{}')`,
      [onboarding],
    );
    await this.query(
      `insert into node_onboardings (onboarding_id, node_id, site_id, profile_id, sku_id, hostname, ipmi_ip)
        select $1, n.id, n.site_id, s.default_profile_id, n.sku, n.hostname, '10.0.0.1'
        from nodes n join maas_sites s on s.id = n.site_id where n.id = $2`,
      [onboarding, id],
    );
  }

  async schedulableNode(): Promise<NodeId> {
    const id = await this.node();
    await this.api.database.database.inTx((tx) => makeSchedulable(tx, id));
    return id;
  }

  async allocationRequest(): Promise<object> {
    const id = await this.schedulableNode();
    return { node_id: id, tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY] };
  }

  async allocation(): Promise<string> {
    return (await this.make("/allocations", await this.allocationRequest())).id;
  }

  /** The request for a key that may be used only at a site of its own. The keys of two requests belong to two tenants. */
  async sshKeyRequest(): Promise<object> {
    const { siteId } = await this.site();
    return { name: "laptop", tenant: this.name(), public_key: SSH_KEY, site_ids: [siteId] };
  }

  async sshKey(): Promise<string> {
    return (await this.make("/ssh-keys", await this.sshKeyRequest())).id;
  }

  async sshKeyGroupRequest(): Promise<object> {
    const { id, tenant, site_ids } = await this.make("/ssh-keys", await this.sshKeyRequest());
    return { name: "team", tenant, key_ids: [id], site_ids };
  }

  async sshKeyGroup(): Promise<string> {
    return (await this.make("/ssh-key-groups", await this.sshKeyGroupRequest())).id;
  }

  /** A full repair in the state, of which the repair systems of the tenant `acme` may report. */
  async repair(state: "reported" | "requested" | "claimed" | "repaired"): Promise<string> {
    const machine_health_issue = { category: "Hardware", summary: "a fan is loud" };
    const { id } = await this.make("/repairs", { ...REASON, node_id: await this.node(), machine_health_issue });
    await this.query(
      `update repair_cases set state = $2, claimed_by = 'ann', claim_until = now() + interval '1 hour', repair_tenant = 'acme', worked_until = now()
        where id = $1`,
      [id, state],
    );
    return id;
  }

  /** A repaired machine with the cleaning and the validation that its way out needs. */
  async checkedRepair(): Promise<string> {
    const nodeId = await this.schedulableNode();
    const machine_health_issue = { category: "Hardware", summary: "a fan is loud" };
    const { id } = await this.make("/repairs", { ...REASON, node_id: nodeId, machine_health_issue });
    await this.make(`/repairs/${id}/report`, { ...REASON, outcome: "completed" });
    await this.make(`/nodes/${nodeId}/decommission`, { ...REASON, mode: "soft_reset" });
    await endCleaning(this.api.database.database.pool, nodeId);
    await this.make(`/repairs/${id}/validate`, { ...REASON, result: "passed" });
    return id;
  }

  async sanitizationRecord(): Promise<string> {
    return storeUnsignedRecord(this.api.database, await this.node());
  }

  /** An allocation whose account exists, on a node whose machine MAAS can deploy again. */
  async activeAllocation(): Promise<string> {
    const wanted = (await this.allocationRequest()) as { readonly node_id: string };
    await this.#onboard(wanted.node_id);
    const { id } = await this.make("/allocations", wanted);
    await this.query("update allocations set status = 'active', active_at = now() where id = $1", [id]);
    return id;
  }

  async failedAllocation(): Promise<string> {
    const id = await this.allocation();
    await this.query("update allocations set status = 'failed', error_code = 'account_exists' where id = $1", [id]);
    return id;
  }

  manualNode = async (): Promise<string> => (await this.make("/nodes", await this.manualNodeRequest())).node_id;

  async manualNodeRequest(): Promise<object> {
    const { siteId, skuId } = await this.site();
    const host = { hostname: this.host().hostname, site_id: siteId };
    return { onboarding_mode: "manual", ...host, sku_id: skuId, region_code: "r1" };
  }

  async externalHost() {
    const { siteId, skuId } = await this.site();
    const host = { hostname: this.host().hostname, site_id: siteId, provisioner: "foreman" };
    return { ...host, sku_id: skuId, region_code: "r1" };
  }

  async attempt(): Promise<string> {
    return (await this.make("/external-attempts", await this.externalHost())).attempt.id;
  }

  async drain(): Promise<string> {
    return (await this.make(`/nodes/${await this.node()}/drain`, REASON)).decommission_id;
  }

  async failedDrain(): Promise<string> {
    return this.#failed(await this.drain());
  }

  async tokenRequest(): Promise<object> {
    return { name: this.name(), role: "viewer", site_ids: [(await this.site()).siteId], expires_in_days: 1 };
  }

  async token(): Promise<string> {
    return (await this.make("/tokens", await this.tokenRequest())).id;
  }

  /** Creates a system that signs its readiness signals. */
  async sender(): Promise<string> {
    const body = { name: this.name(), site_ids: [(await this.site()).siteId] };
    return (await this.api.ask("POST", "/api/v1/readiness/senders", body)).body.id;
  }

  /** Creates a request of another person that waits for a second person. The first admin token is in the hands of a known person. */
  async approval(): Promise<string> {
    await this.query("update api_tokens set known_to = '{person:dora}' where name = 'admin'", []);
    const siteId = SiteId.parse((await this.site()).siteId);
    return this.api.database.database.inTx((tx) => addWaitingApproval(tx, siteId));
  }

  async webhook(): Promise<string> {
    const body = { url: "https://receiver.example/hook", secret: newSecret() };
    const created = await this.api.ask("POST", HOOKS, body);
    return created.body.id;
  }

  /** Begins a rotation of the hub's keys if `underWay` is true, and otherwise aborts the present rotation. */
  async rotation(underWay: boolean): Promise<void> {
    const { next } = (await this.api.ask("GET", `${ADMIN}/authority`)).body;
    if ((next !== null) === underWay) return;
    await this.make(`/authority/rotation${underWay ? "" : "/abort"}`, REASON);
  }

  async #failed(workflowId: string): Promise<string> {
    await this.query(
      `update workflows set status = 'failed_retryable', started_at = now(), completed_at = now(), wake_at = null,
         failure_class = 'upstream_transient', failure_code = 'maas_timeout', failure_message = 'm' where id = $1`,
      [workflowId],
    );
    return workflowId;
  }
}

type ApiAnswerBody = Awaited<ReturnType<ApiHarness["ask"]>>["body"];
