import { randomUUID } from "node:crypto";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import type { ReadMaasFacts } from "../../hub/http/deps.ts";
import { type NodeId, SiteId } from "../../shared/ids.ts";
import { MAAS_STATUS } from "../../shared/maas-status.ts";
import { MACHINE_CLIENT, TestProvider } from "../fakes/oidc/provider.ts";
import { type Answer, type ApiHarness, type SeededApi, startApi } from "./api-harness.ts";
import { oidcSettings } from "./oidc-settings.ts";
import { addMachine, addNodeInService } from "./site-nodes.ts";

const ADMIN = "/api/v1/admin";
export const REASON = { reason: "a test" };
export const FULL = { mode: "full_decommission", ...REASON };
const RULES = [
  { claim: "groups", value: "admins", role: "admin" },
  { claim: "groups", value: "operators", role: "operator" },
  { claim: "groups", value: "operators-dc2", role: "operator", sites: ["dc2"] },
  { claim: "groups", value: "seconds", role: "operator" },
  { claim: "groups", value: "readers", role: "viewer" },
];
/** The people of the provider, each with the group that gives a role. */
const PEOPLE = {
  ann: "operators",
  bob: "operators",
  carl: "operators",
  eve: "operators-dc2",
  dave: "admins",
  dora: "admins",
  sam: "seconds",
  vic: "readers",
};
export type Person = keyof typeof PEOPLE;

/** A hub with a provider of sign-in, whose people ask for and give approvals. The name "admin" stands for the first admin token, and the name "scheduler" for a machine of the provider. */
export class ApprovalWorld {
  readonly api: ApiHarness;
  readonly provider: TestProvider;
  readonly #folder: string;
  readonly #bearer: ReadonlyMap<string, string>;

  private constructor(api: ApiHarness, provider: TestProvider, folder: string, bearer: ReadonlyMap<string, string>) {
    this.api = api;
    this.provider = provider;
    this.#folder = folder;
    this.#bearer = bearer;
  }

  static async start(maasFacts: { readonly maasFacts?: ReadMaasFacts } = {}): Promise<ApprovalWorld> {
    const folder = mkdtempSync(join(tmpdir(), "muster-approvals-"));
    const rolesFile = join(folder, "roles.json");
    writeFileSync(rolesFile, JSON.stringify(RULES));
    const provider = await TestProvider.start([]);
    const oidc = oidcSettings(provider, { rolesFile });
    const api = await startApi({ signIn: { publicUrl: null, secure: false, oidc }, ...maasFacts });
    const bearer = new Map([["admin", api.admin]]);
    // The access tokens outlive every suite, also on a busy machine.
    const exp = Math.floor(Date.now() / 1000) + 3_600;
    for (const [sub, group] of Object.entries(PEOPLE))
      bearer.set(sub, await provider.accessToken({ sub, exp, groups: [group] }));
    const { id } = MACHINE_CLIENT;
    bearer.set(id, await provider.accessToken({ sub: id, client_id: id, exp, groups: ["admins"] }));
    return new ApprovalWorld(api, provider, folder, bearer);
  }

  async close(): Promise<void> {
    await this.api.close();
    await this.provider.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Gives a group another role. */
  setRole(group: string, role: string): void {
    const file = join(this.#folder, "roles.json");
    writeFileSync(
      `${file}.new`,
      JSON.stringify(RULES.map((rule) => (rule.value === group ? { ...rule, role } : rule))),
    );
    renameSync(`${file}.new`, file);
  }

  query(text: string, values: unknown[] = []) {
    return this.api.database.database.pool.query(text, values);
  }

  /** Sends a request of a person, or with a token. */
  send(who: string, method: string, path: string, body?: object, headers: object = {}): Promise<Answer> {
    const authorization = `Bearer ${this.#bearer.get(who) ?? who}`;
    return this.api.ask(method, `${ADMIN}${path}`, body, { authorization, ...headers });
  }

  post(who: string, path: string, body: object, approval?: string): Promise<Answer> {
    return this.send(who, "POST", path, body, approval === undefined ? {} : { "muster-approval": approval });
  }

  async patch(who: string, path: string, body: object, approval?: string): Promise<Answer> {
    const version = (await this.send("admin", "GET", path)).headers.get("etag") ?? "";
    const headers = { "if-match": version, ...(approval === undefined ? {} : { "muster-approval": approval }) };
    return this.send(who, "PATCH", path, body, headers);
  }

  /** Changes a profile, which must need no second person. */
  async patched({ siteId, profileId }: SeededApi, body: object): Promise<void> {
    const answer = await this.patch("admin", `/maas-sites/${siteId}/profiles/${profileId}`, body);
    expect(answer.status, JSON.stringify(answer.problem)).toBe(200);
  }

  /** Creates a node with a machine and a finished onboarding with the site's default profile. */
  async node({ siteId, profileId }: SeededApi): Promise<NodeId> {
    const hostname = `h${randomUUID().slice(0, 8)}`;
    const own = { siteId: SiteId.parse(siteId), hostname };
    const id = await this.api.database.database.inTx(async (tx) => {
      const nodeId = await addNodeInService(tx, own);
      await addMachine(tx, { ...own, nodeId }, { status: MAAS_STATUS.deployed, ipmiIp: hostname });
      return nodeId;
    });
    const onboarding = randomUUID();
    await this.query(
      "insert into workflows (id, kind, status, stage, input) values ($1, 'onboard', 'completed', 'wait_for_agent_enrollment', '{}')",
      [onboarding],
    );
    await this.query(
      `insert into node_onboardings (onboarding_id, node_id, site_id, profile_id, sku_id, hostname, ipmi_ip)
        values ($1, $2, $3, $4, 's', $5, '10.0.0.1')`,
      [onboarding, id, siteId, profileId, hostname],
    );
    return id;
  }

  /** Creates a token, and returns its id and its text. */
  async token(who: string, name: string): Promise<{ id: string; token: string }> {
    const answer = await this.post(who, "/tokens", { name, role: "admin", expires_in_days: 1 });
    expect(answer.status, JSON.stringify(answer.problem)).toBe(201);
    return answer.body;
  }

  grant(who: string, id: string): Promise<Answer> {
    return this.post(who, `/approvals/${id}/grant`, REASON);
  }

  async granted(id: string, who: Person = "bob"): Promise<void> {
    const answer = await this.grant(who, id);
    expect(answer.status, JSON.stringify(answer.problem)).toBe(200);
  }

  async shown(id: string): Promise<Answer["body"]> {
    return (await this.send("vic", "GET", `/approvals/${id}`)).body;
  }
}

/** Returns the id of the approval for which an answer asks. */
export function asked(answer: Answer): string {
  expect([answer.status, answer.problem?.code], JSON.stringify(answer.problem)).toEqual([409, "approval_required"]);
  return answer.problem.context?.["approval_id"] ?? "";
}

export const code = async (answer: Promise<Answer>): Promise<string> => (await answer).problem?.code ?? "none";
