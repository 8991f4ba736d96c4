/** A verb on a whole batch must not block other transactions that write the same rows. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordDomainEvent } from "../../../hub/db/queries/domain-events.ts";
import { lastSettled, listDomainEvents } from "../../../hub/db/queries/domain-events-list.ts";
import { EVERYWHERE } from "../../../hub/db/queries/reach.ts";
import { cancelBatch, HOSTS_AT_ONCE, recoverBatch } from "../../../hub/workflows/engine/batch-verbs.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { BatchId } from "../../../shared/ids.ts";
import { type ApiHarness, OUTSIDE, seedApi, startApi } from "../../support/api-harness.ts";
import { quietLog } from "../../support/log.ts";
import { MemorySecrets } from "../../support/memory-secrets.ts";
import { until } from "../../support/until.ts";

const ann = { actor: "ann", role: "admin", reason: "the wrong rack" } as const;

describe("a verb of a batch", () => {
  let api: ApiHarness;
  let selectors: { site_id: string; profile_id: string; sku_id: string };
  let made = 0;
  beforeAll(async () => {
    api = await startApi();
    const { siteId, profileId, skuId } = await seedApi(api, "dc1");
    selectors = { site_id: siteId, profile_id: profileId, sku_id: skuId };
  });
  afterAll(() => api?.close());

  const query = async (text: string, values: unknown[] = []) =>
    (await api.database.database.pool.query(text, values)).rows;

  async function createBatch(hosts: number): Promise<{ batchId: BatchId; ids: string[] }> {
    const nodes = Array.from({ length: hosts }, () => {
      made += 1;
      return { hostname: `v${made}`, ipmi_ip: `10.9.${made >> 8}.${made & 255}` };
    });
    const { status, body } = await api.ask("POST", "/api/v1/admin/onboardings/batch", { ...selectors, nodes });
    expect(status).toBe(202);
    const ids = body.onboardings.map((one: { onboarding_id: string }) => one.onboarding_id).toSorted();
    return { batchId: BatchId.parse(body.batch_id), ids };
  }

  const fail = (run: typeof query, ids: readonly string[], failureClass: string, code: string) =>
    run(
      `update workflows set status = 'failed_retryable', started_at = now(), completed_at = now(), wake_at = null,
         failure_class = $2, failure_code = $3, failure_message = 'm' where id = any($1::uuid[])`,
      [ids, failureClass, code],
    );
  const kindsOf = () => {
    const { db, inTx } = api.database.database;
    return workflowsOf({ db, inTx, log: quietLog, secrets: new MemorySecrets(), ...OUTSIDE });
  };
  const rowOf = async (id: string | undefined) =>
    (await query("select status, stage, compensation from workflows where id = $1", [id]))[0];

  /**
   * Runs a verb while another transaction holds the row of the onboarding's workflow. While the verb waits for the workflow's row, the other
   * transaction runs `change` and commits.
   */
  async function inBetween<T>(id: string, verb: () => Promise<T>, change: (run: typeof query) => Promise<unknown>) {
    const other = await api.database.database.pool.connect();
    try {
      await other.query("begin");
      await other.query("select 1 from workflows where id = $1 for update", [id]);
      const asked = verb();
      await until("the verb to wait for the row", async () => {
        const waiting = await query(
          "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        );
        return waiting.length > 0 ? true : undefined;
      });
      await change(async (text, values = []) => (await other.query(text, values)).rows);
      await other.query("commit");
      return await asked;
    } finally {
      other.release(true);
    }
  }
  const verb = (batchId: BatchId, name: "cancel" | "recover", body: object = {}) =>
    api.ask("POST", `/api/v1/admin/onboarding-batches/${batchId}/${name}`, { reason: ann.reason, ...body });

  it("commits a few hosts at a time, and delays no other events while it waits for a host's row", async () => {
    const hosts = 2 * HOSTS_AT_ONCE + 20;
    const { batchId, ids } = await createBatch(hosts);
    const { db, inTx } = api.database.database;
    const before = await lastSettled(db);
    const cancelled = await inBetween(
      ids.at(-1) ?? "",
      () => verb(batchId, "cancel"),
      async () => {
        await until("the first of them to be cancelled", async () => {
          const done = await query("select 1 from workflows where batch_id = $1 and status = 'cancelled'", [batchId]);
          return done.length === 2 * HOSTS_AT_ONCE ? true : undefined;
        });
        await inTx((tx) =>
          recordDomainEvent(tx, {
            type: "node.status.changed",
            subject: "nodes/unrelated",
            data: { node_id: "n", hostname: "h", from: "offline", to: "active", owner: "heartbeat" },
          }),
        );
        const seen = await listDomainEvents(db, { after: before, limit: 1000, reach: EVERYWHERE });
        expect(seen.at(-1)?.subject).toBe("nodes/unrelated");
        expect(seen).toHaveLength(2 * HOSTS_AT_ONCE + 1);
      },
    );
    expect(cancelled).toMatchObject({ status: 200, body: { applied: hosts, skipped: 0 } });
    const audits = await query("select details from audit_logs where action = 'cancelOnboardingBatch'");
    expect(audits).toEqual([{ details: { applied: hosts, skipped: 0 } }]);
  });

  it("cancels pending hosts before running ones, so that no pending host takes a freed place", async () => {
    const { batchId, ids } = await createBatch(4);
    const [first, , third] = ids;
    await query("update workflows set status = 'running', started_at = now() where id = any($1::uuid[])", [
      [first, third],
    ]);
    const { body } = await verb(batchId, "cancel");
    const told = body.results.map((one: { onboarding_id: string; status: string }) => [one.onboarding_id, one.status]);
    expect(told).toEqual([
      [ids[1], "cancelled"],
      [ids[3], "cancelled"],
      [first, "compensating"],
      [third, "compensating"],
    ]);
    for (const id of [first, third]) expect((await rowOf(id)).compensation).toMatchObject({ cause: "cancel" });
  });

  it("skips a host that failed before its turn, unless failed hosts are to be cancelled too", async () => {
    for (const failed of [false, true]) {
      const { batchId, ids } = await createBatch(2);
      const [, late = ""] = ids;
      const { body } = await inBetween(
        late,
        () => verb(batchId, "cancel", { failed }),
        (run) => fail(run, [late], "agent_enrollment_timeout", "agent_enrollment_timeout"),
      );
      const result = body.results.find((one: { onboarding_id: string }) => one.onboarding_id === late);
      expect(result.skipped_because === null, JSON.stringify(result)).toBe(failed);
      expect((await rowOf(late)).status).toBe(failed ? "compensating" : "failed_retryable");
      expect(body).toMatchObject(failed ? { applied: 2, skipped: 0 } : { applied: 1, skipped: 1 });
      if (!failed) expect(result).toMatchObject({ status: "failed_retryable", verb: null });
    }
  });

  it("recovers a host by its failure at the host's turn, and skips it if it no longer has one", async () => {
    const { batchId, ids } = await createBatch(3);
    const [, changed = "", mended = ""] = ids;
    await fail(query, ids, "upstream_transient", "maas_timeout");
    const recover = () => verb(batchId, "recover");
    const { body } = await inBetween(changed, recover, async (run) => {
      await fail(run, [changed], "bmc_power_failure", "bmc_unreachable");
      await run("update workflows set status = 'running' where id = $1", [mended]);
    });
    const told = body.results.map((one: { verb: string | null; status: string }) => [one.verb, one.status]);
    expect(told).toEqual([
      ["retry", "pending"],
      ["resume", "pending"],
      [null, "running"],
    ]);
    expect(body.results[2].skipped_because).toContain("running");
  });

  it("recovers only hosts of the requested failure class, judged at each host's turn", async () => {
    const { batchId, ids } = await createBatch(2);
    const [, changed = ""] = ids;
    await fail(query, ids, "upstream_transient", "maas_timeout");
    const recover = () => verb(batchId, "recover", { failure_class: "upstream_transient" });
    const { body } = await inBetween(changed, recover, (run) =>
      fail(run, [changed], "bmc_power_failure", "bmc_unreachable"),
    );
    expect(body).toMatchObject({ applied: 1, skipped: 1 });
    expect((await rowOf(changed)).status).toBe("failed_retryable");
  });

  it("rolls back everything for a host that refuses, and continues with the others", async () => {
    const { batchId, ids } = await createBatch(3);
    const [, refusing = ""] = ids;
    const { inTx } = api.database.database;
    const kinds = kindsOf().map((kind) => ({
      ...kind,
      hooks: {
        ...kind.hooks,
        onEnded: async (...[tx, row, end]: Parameters<NonNullable<typeof kind.hooks.onEnded>>) => {
          await kind.hooks.onEnded?.(tx, row, end);
          if (row.id === refusing) throw new ApiError("conflict", "The host refuses.");
        },
      },
    }));
    const result = await cancelBatch(inTx, kinds, { kind: "onboarding", id: batchId }, { ...ann, failed: false });
    expect(result).toMatchObject({ applied: 2, skipped: 1 });
    expect(result.results[1]).toMatchObject({ status: "pending", skipped_because: "The host refuses." });
    expect((await rowOf(refusing)).status).toBe("pending");
    expect(await query("select 1 from workflow_events where workflow_id = $1", [refusing])).toEqual([]);
    expect(await query("select 1 from audit_logs where target = $1", [`workflows/${refusing}`])).toEqual([]);
    expect(await query("select 1 from domain_events where subject = $1", [`onboardings/${refusing}`])).toEqual([]);
    expect(await query("select 1 from workflow_subjects where workflow_id = $1", [refusing])).toHaveLength(2);
    expect(
      (await cancelBatch(inTx, kindsOf(), { kind: "onboarding", id: batchId }, { ...ann, failed: false })).applied,
    ).toBe(1);
  });

  it("that broke off in the middle is finished by a second request", async () => {
    const hosts = HOSTS_AT_ONCE + 5;
    const { batchId, ids } = await createBatch(hosts);
    await fail(query, ids, "upstream_transient", "maas_timeout");
    const { inTx } = api.database.database;
    const kinds = kindsOf();
    let chunks = 0;
    const dying: typeof inTx = async (fn, options) => {
      chunks += 1;
      if (chunks > 2) throw new Error("the hub is killed");
      return inTx(fn, options);
    };
    await expect(recoverBatch(dying, kinds, { kind: "onboarding", id: batchId }, ann)).rejects.toThrow(
      "the hub is killed",
    );
    const again = await verb(batchId, "recover");
    expect(again.body).toMatchObject({ applied: 5, skipped: 0 });
    const audits = await query(
      "select 1 from audit_logs a join workflows w on a.target = 'workflows/' || w.id where w.batch_id = $1",
      [batchId],
    );
    expect(audits, "each host was taken up once").toHaveLength(hosts);
  });
});
