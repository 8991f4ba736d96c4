/**
 * An engine in a process of its own, to be paused and killed: DATABASE_URL, and HOLD_MS for how long its only stage takes. Each begin and end of
 * a run is a line on stderr.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { openDatabase } from "../../hub/db/client.ts";
import { sql } from "../../hub/db/orm.ts";
import { startWorkflowRunner } from "../../hub/workflows/engine/runner.ts";
import { quietLog } from "./log.ts";
import { toyStage, toyWorkflow } from "./toy-workflow.ts";

const url = process.env["DATABASE_URL"] ?? "";
const hubId = randomUUID();
const database = openDatabase({ url, poolSize: 4, applicationName: "toy-hub", log: quietLog });
startWorkflowRunner({
  ...database,
  hubId,
  workflows: [
    toyWorkflow([
      toyStage("hold", async ({ workflowId }) => {
        // Not by its signal: a stage that goes on regardless is the worst that a paused hub can have under way.
        await sleep(Number(process.env["HOLD_MS"]));
        return {
          kind: "done",
          message: "done",
          commit: (tx) => tx.execute(sql`insert into effects values (${workflowId}, ${hubId})`).then(() => undefined),
        };
      }),
    ]),
  ],
  classifyError: () => null,
  log: quietLog,
  databaseUrl: url,
});
process.stdout.write(`${JSON.stringify({ listening: hubId })}\n`);
