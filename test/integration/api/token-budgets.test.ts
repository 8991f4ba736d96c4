import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ApiHarness, startApi } from "../../support/api-harness.ts";
import { commandLine } from "../../support/command-line.ts";

/** The rate limits in `RATES` are lower than the hub's own limits, so that the test is fast. */
const RATES = { request: { burst: 20, perMinute: 10 }, write: { burst: 3, perMinute: 60 } };
const NODES = "/api/v1/admin/nodes";
const cwd = mkdtempSync(join(tmpdir(), "muster-budgets-"));
let api: ApiHarness;
let url: string;
beforeAll(async () => {
  api = await startApi({ tokenRates: RATES });
  url = await api.listen();
});
afterAll(async () => {
  await api?.close();
  rmSync(cwd, { recursive: true, force: true });
});

const viewer = () => ({ authorization: `Bearer ${api.viewer}` });
const useUp = async (headers = {}) => {
  const turns = Array.from({ length: 2 * RATES.request.burst });
  const asked = await Promise.all(turns.map(() => api.ask("GET", NODES, undefined, headers)));
  return asked.filter(({ status }) => status !== 200);
};
const sku = (id: string) => api.ask("POST", "/api/v1/admin/skus", { id, gpu_vendor: "amd", gpus_total: 8 });

describe("a token with endless requests", () => {
  it("has a separate budget for changes, and a refused request changes nothing", async () => {
    const made: number[] = [];
    for (let n = 0; n < 8; n += 1) made.push((await sku(`s${n}`)).status);
    expect(made.slice(0, RATES.write.burst)).toEqual(Array(RATES.write.burst).fill(201));
    expect(made).toContain(429);
    const { rows } = await api.database.database.pool.query("select count(*)::int as n from skus");
    expect(rows[0].n).toBe(made.filter((status) => status === 201).length);
  });

  it("is rate-limited, while other tokens and public routes are answered", async () => {
    const refused = await useUp();
    expect(refused.length).toBeGreaterThanOrEqual(RATES.request.burst);
    for (const { status, problem, headers } of refused) {
      expect(problem).toMatchObject({ status: 429, code: "rate_limited", detail: expect.stringContaining("admin") });
      expect(status).toBe(429);
      expect(headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
    }
    expect((await api.ask("GET", NODES, undefined, viewer())).status).toBe(200);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await api.ask("GET", NODES, undefined, { authorization: "Bearer unknown" })).status).toBe(401);
  });

  it("makes the command line wait and retry once", async () => {
    await useUp(viewer());
    const listed = await commandLine({ api, url, cwd })(["list-nodes"], { MUSTER_TOKEN: api.viewer });
    expect(listed).toMatchObject({ exitCode: 0, stderr: expect.stringMatching(/trying again in \d+ s/) });
  });
});
