import type { Log } from "../../shared/log.ts";
import { pruneAudit } from "../db/queries/audit-prune.ts";
import { type KeptDays, removeOutdated } from "../db/queries/retention.ts";
import type { Db, InTx } from "../db/tx.ts";
import { periodically } from "../timing/periodically.ts";

const EVERY_MS = 3_600_000;

/** Removes old rows from the database tables that would otherwise grow for ever. The hub removes old rows at its start and once an hour. */
export const startRetention = ({ db, inTx, log, days }: { db: Db; inTx: InTx; log: Log; days: KeptDays }) =>
  periodically({
    everyMs: EVERY_MS,
    turn: async () => {
      const audit = await pruneAudit(inTx, days.history);
      if (audit === null) log.debug("this database role may not remove audit entries, so the hub removes none");
      const removed = { ...(await removeOutdated(db, days)), audit_logs: audit ?? 0 };
      if (Object.values(removed).some((rows) => rows > 0))
        log.info("outdated records removed", { removed, kept_days: days });
    },
    log,
    failed: "outdated records could not be removed",
  });
