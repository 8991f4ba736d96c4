/**
 * A workflow engine in its own process, which a test can pause and kill. The engine's process reads the environment variables DATABASE_URL and
 * HOLD_MS. HOLD_MS is the duration of the only stage of the engine's workflow.
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
        // The toy hub's stage ignores its abort signal on purpose, like a stage that continues after its hub has lost the workflow's lease.
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
