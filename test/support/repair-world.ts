import { expect } from "vitest";
import { sweepRepairs } from "../../hub/repair/sweep.ts";
import { type NodeId, SiteId } from "../../shared/ids.ts";
import type { RecordVerdict } from "../../shared/sanitization-record.ts";
import { addSchedulableNode, SSH_KEY } from "./allocatable-node.ts";
import { type Answer, type ApiHarness, seedApi, startApi } from "./api-harness.ts";
import { apiToken } from "./api-token.ts";
import { endCleaning } from "./end-cleaning.ts";
import { quietLog } from "./log.ts";

const ADMIN = "/api/v1/admin";
export const ISSUE = { category: "Hardware", summary: "GPU 3 fell off the bus", details: "XID 79 twice" };
// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies that each route's own schema describes
type Body = any;

/** A hub with a site that repairs automatically and one that does not, and with tokens of two repair teams. */
export class RepairWorld {
  readonly api: ApiHarness;
  readonly manual: SiteId;
  readonly automatic: SiteId;
  readonly team: string;
  readonly otherTeam: string;
  readonly #skuId: string;
  named = 0;

  private constructor(
    api: ApiHarness,
    given: { manual: SiteId; automatic: SiteId; skuId: string; team: string; otherTeam: string },
  ) {
    this.api = api;
    this.manual = given.manual;
    this.automatic = given.automatic;
    this.team = given.team;
    this.otherTeam = given.otherTeam;
    this.#skuId = given.skuId;
  }

  static async start(options: Parameters<typeof startApi>[0] = {}): Promise<RepairWorld> {
    const api = await startApi(options);
    const { siteId: manual, skuId } = await seedApi(api, "manual");
    const { siteId: automatic } = await seedApi(api, "automatic");
    const token = { role: "repair", sites: null, createdBy: "admin", expiresAt: new Date(Date.now() + 9e6) } as const;
    const tokenOf = (name: string) => apiToken(api.database, { ...token, name, tenant: name });
    const world = new RepairWorld(api, {
      ...{ manual: SiteId.parse(manual), automatic: SiteId.parse(automatic), skuId },
      ...{ team: await tokenOf("fixers"), otherTeam: await tokenOf("others") },
    });
    await world.changeSite(world.automatic, { auto_repair: true });
    return world;
  }

  async changeSite(id: SiteId, change: object): Promise<void> {
    const path = `${ADMIN}/maas-sites/${id}`;
    const { headers } = await this.api.ask("GET", path);
    const answer = await this.api.ask("PATCH", path, change, { "if-match": headers.get("etag") ?? "" });
    expect(answer.status, JSON.stringify(answer.problem)).toBe(200);
  }

  async query(text: string, values: readonly unknown[]): Promise<Body[]> {
    return (await this.api.database.database.pool.query(text, [...values])).rows;
  }

  newNode(siteId: SiteId = this.manual): Promise<NodeId> {
    this.named += 1;
    const host = { siteId, hostname: `h${this.named}`, sku: this.#skuId };
    return this.api.database.database.inTx((tx) => addSchedulableNode(tx, host));
  }

  get(path: string, token?: string): Promise<Answer> {
    return this.api.ask("GET", `${ADMIN}${path}`, undefined, as(token));
  }

  post(path: string, body: object, token?: string): Promise<Answer> {
    return this.api.ask("POST", `${ADMIN}${path}`, { reason: "a test", ...body }, as(token));
  }

  async must(path: string, body: object = {}, token?: string): Promise<Body> {
    const answer = await this.post(path, body, token);
    expect(answer.status, JSON.stringify(answer.problem)).toBeLessThan(300);
    return answer.body;
  }

  /** Returns the status, code and text of a refusal. */
  async refused(path: string, body: object = {}, token?: string): Promise<string> {
    const { status, problem } = await this.post(path, body, token);
    return `${status} ${problem?.code}: ${problem?.detail}`;
  }

  verb(id: string, name: string, body: object = {}, token?: string): Promise<Body> {
    return this.must(`/repairs/${id}/${name}`, body, token);
  }

  /** Returns the newest case of the node, or null. */
  async repairOf(nodeId: string): Promise<Body> {
    const [newest] = (await this.get(`/repairs?node_id=${nodeId}`)).body.items;
    return newest === undefined ? null : (await this.get(`/repairs/${newest.id}`)).body;
  }

  async marks(nodeId: string): Promise<string[]> {
    const { body } = await this.get(`/nodes/${nodeId}/health-overrides`);
    return body.health_overrides.map(({ source }: { source: string }) => source);
  }

  async allocate(nodeId: string): Promise<string> {
    const body = { node_id: nodeId, tenant: "acme", login_user: "ada", ssh_keys: [SSH_KEY], root: false };
    const made = await this.api.ask("POST", `${ADMIN}/allocations`, body);
    expect(made.status, JSON.stringify(made.problem)).toBe(202);
    await this.query("update allocations set status = 'active' where id = $1", [made.body.id]);
    return made.body.id;
  }

  release(id: string, said: object): Promise<Body> {
    return this.must(`/allocations/${id}/release`, said);
  }

  endCleaning(nodeId: string, verdict?: RecordVerdict): Promise<void> {
    return endCleaning(this.api.database.database.pool, nodeId, verdict);
  }

  /** Makes a node whose tenant has released it with a fault, after its cleaning. */
  async faulty(siteId: SiteId, issue: object = ISSUE): Promise<{ nodeId: NodeId; repair: Body }> {
    const nodeId = await this.newNode(siteId);
    await this.release(await this.allocate(nodeId), { machine_health_issue: issue });
    await this.endCleaning(nodeId);
    return { nodeId, repair: await this.repairOf(nodeId) };
  }

  /** Claims a requested case, repairs its machine, and takes the machine out of repair. */
  async repairAndClose(nodeId: NodeId, id: string): Promise<void> {
    await this.verb(id, "claim", {}, this.team);
    await this.verb(id, "report", { outcome: "completed" }, this.team);
    await this.must(`/nodes/${nodeId}/decommission`, { mode: "soft_reset" });
    await this.endCleaning(nodeId);
    await this.verb(id, "validate", { result: "passed" });
    await this.verb(id, "close");
  }

  /** Adds so many entries to a case that its timeline takes no more of those that may be repeated at will. */
  async fillTimeline(id: string): Promise<void> {
    const fill = `insert into repair_events (repair_id, node_id, type, attempt, actor, message)
      select c.id, c.node_id, 'claim_extended', c.attempt, 'x', 'x' from repair_cases c, generate_series(1, 500) where c.id = $1`;
    await this.query(fill, [id]);
  }

  sweep(): Promise<number> {
    return sweepRepairs({ ...this.api.database.database, log: quietLog });
  }
}

const as = (token: string | undefined): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` };
