import { randomUUID } from "node:crypto";
import type { NodeStatus } from "../../shared/node-status.ts";
import type { TestDatabase } from "./database.ts";

export async function bindNode(
  { database: { pool } }: TestDatabase,
  siteId: string,
  { hostname, status }: { readonly hostname: string; readonly status: NodeStatus },
): Promise<string> {
  const id = randomUUID();
  await pool.query(
    `insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, status, onboarding_mode)
       values ($1, $2, $3, 'sku', 8, 'r1', $4, 'maas')`,
    [id, hostname, siteId, status],
  );
  await pool.query(
    "insert into node_maas_state (node_id, site_id, maas_system_id, ipmi_ip) values ($1, $2, 'abc123', '10.0.0.1')",
    [id, siteId],
  );
  return id;
}
