import type { z } from "zod";
import type { HealthOverride } from "../../../shared/api/nodes.ts";
import type { NodeHealthOverride } from "../../db/schema/index.ts";
import { neededEraseOf } from "../../node/health-override.ts";

export const toHealthOverride = (row: NodeHealthOverride): z.input<typeof HealthOverride> => ({
  source: row.source,
  target: row.target,
  reason: row.reason,
  set_by: row.setBy,
  needed_erase: neededEraseOf(row),
  since: row.since.toISOString(),
});
