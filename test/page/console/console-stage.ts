import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { Console } from "../../../hub/console/console.ts";
import { sql } from "../../../hub/db/orm.ts";
import { seedFleet } from "../../bench/seed-fleet.ts";
import { type ApiHarness, startApi } from "../../support/api-harness.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";
import { startChromium } from "../chromium.ts";
import type { Visit, VisitOptions } from "../visit.ts";
import { Visits } from "../visits.ts";
import { KEYS } from "./key-seed.ts";
import { OPERATION, PROFILE, REPAIR, SITE } from "./screens.ts";

/** The number of nodes of the fleet. One node of forty is quarantined, one offline and one retired. */
export const NODES = 240;

/** The events of one failed operation, with a usual wait of 20 minutes and the failure two hours ago. */
const STAGES = sql.raw(`insert into workflow_events (workflow_id, stage, attempt, status, message, fence, occurred_at)
  select '${OPERATION}', stage, 1, status, message, 1, now() - make_interval(mins => minutes) from (values
    ('load_site_config', 'started', 'Admitted', 150), ('load_site_config', 'succeeded', 'MAAS answers', 149),
    ('wait_for_ready', 'started', 'Started', 149), ('wait_for_ready', 'waiting', 'MAAS to commission and test the machine', 148),
    ('wait_for_ready', 'succeeded', 'The machine is Ready', 129),
    ('deploy_via_maas', 'started', 'Started', 129), ('deploy_via_maas', 'failed', 'MAAS answered with 503', 120)
  ) as e (stage, status, message, minutes)`);

/** How the fleet was in the last hours. */
const SAMPLES = sql.raw(`insert into fleet_samples (sampled_at, site_id, nodes, schedulable, waiting)
  select now() - make_interval(hours => h), null, '{"active": 200, "offline": 6}', 180 + h, 3 from generate_series(1, 20) h`);

/** A repair of the first retired node, whose only attempt has failed. */
const REPAIRS = [
  `insert into repair_cases (id, node_id, site_id, hostname, mode, state, category, summary, finding, opened_by, attempt, claimed_by, outcome)
    select '${REPAIR}', id, site_id, hostname, 'full', 'failed', 'Hardware', 'GPU 3 fell off the bus', 'RepairSystem processing incomplete', 'ann', 1, 'fixers', 'failed'
    from nodes where status = 'retired' order by hostname limit 1`,
  `insert into repair_events (repair_id, node_id, type, attempt, actor, message, details, occurred_at)
    select '${REPAIR}', c.node_id, e.type, e.attempt, e.actor, e.message, e.details::jsonb, now() - make_interval(hours => e.hours)
    from repair_cases c, (values
      ('opened', 0, 'ann', 'Hardware: GPU 3 fell off the bus', '{"issue": {"category": "Hardware", "summary": "GPU 3 fell off the bus"}}', 9),
      ('requested', 0, 'ann', 'ticket 4711', '{}', 8), ('claimed', 1, 'fixers', 'the night shift', '{}', 7),
      ('failed', 1, 'fixers', 'the board is broken', '{"outcome": "failed"}', 2)
    ) as e (type, attempt, actor, message, details, hours) where c.id = '${REPAIR}'`,
];

/** One hub, one browser and one fleet for all test cases of the console. */
export class ConsoleStage {
  readonly api: ApiHarness;
  readonly url: string;
  readonly #browser: Browser;
  readonly #console: Console;
  readonly #folder: string;
  readonly #visits: Visits;

  private constructor(of: { api: ApiHarness; url: string; browser: Browser; console: Console; folder: string }) {
    this.api = of.api;
    this.url = of.url;
    this.#browser = of.browser;
    this.#console = of.console;
    this.#folder = of.folder;
    this.#visits = new Visits(of.browser, of.url);
  }

  static async set(): Promise<ConsoleStage> {
    const folder = mkdtempSync(join(tmpdir(), "muster-console-page-"));
    const console = new Console({ stateDir: folder, log: quietLog });
    const built = until("the console to be built", async () =>
      (await console.look()).kind === "ready" ? true : undefined,
    );
    const [browser, api] = await Promise.all([startChromium(), startApi({ console })]);
    await seedFleet(api.database.database.db, NODES);
    await api.database.database.db.execute(STAGES);
    await api.database.database.db.execute(SAMPLES);
    const profile = await api.ask("POST", `/api/v1/admin/maas-sites/${SITE}/profiles`, { name: "usual" });
    await api.database.database.pool.query("update maas_site_profiles set id = $2 where id = $1", [
      profile.body.id,
      PROFILE,
    ]);
    for (const statement of [...REPAIRS, ...KEYS]) await api.database.database.pool.query(statement);
    await built;
    return new ConsoleStage({ api, url: await api.listen(), browser, console, folder });
  }

  /** Begins a visit of somebody who has not signed in. */
  stranger(path: string, options: VisitOptions = {}): Promise<Visit> {
    return this.#visits.begin({ ...options, path: `/console${path}` });
  }

  async operator(path: string, options: VisitOptions = {}, token = this.api.admin): Promise<Visit> {
    const visit = await this.stranger(path, options);
    await visit.page.getByLabel("Token").fill(token);
    await visit.page.getByRole("button", { name: "Log in" }).click();
    await visit.page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
    await visit.page.getByText("live", { exact: true }).waitFor({ state: "attached" });
    return visit;
  }

  /** Sends a change to the API as another person would. */
  async change(path: string, body: object): Promise<void> {
    const { status, problem } = await this.api.ask("POST", `/api/v1/admin${path}`, body);
    if (status >= 300) throw new Error(JSON.stringify(problem));
  }

  /** Changes the present version of an object as another person would. */
  async changeVersion(path: string, body: object): Promise<void> {
    const { headers } = await this.api.ask("GET", `/api/v1/admin${path}`);
    const version = { "if-match": headers.get("etag") ?? "" };
    const { status, problem } = await this.api.ask("PATCH", `/api/v1/admin${path}`, body, version);
    if (status >= 300) throw new Error(JSON.stringify(problem));
  }

  clear(): Promise<void> {
    return this.#visits.clear();
  }

  async close(): Promise<void> {
    await this.#browser.close();
    await this.api.close();
    await this.#console.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
