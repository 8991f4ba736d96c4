import type { BatchId, NodeId, ProfileId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { index, integer, pgTable, sql, text, uuid } from "../orm.ts";
import { createdAt } from "./columns.ts";
import { workflows } from "./workflows.ts";

/** The operator's request for an onboarding (lifecycle 4.2.1). The onboarding's progress is in the row of `workflows` with the onboarding's id. */
export const nodeOnboardings = pgTable(
  "node_onboardings",
  {
    onboardingId: uuid("onboarding_id")
      .$type<WorkflowId>()
      .primaryKey()
      .references(() => workflows.id),
    batchId: uuid("batch_id").$type<BatchId>(),
    /** The request of an onboarding reserves the id of the node. The onboarding's stage render_cloud_init inserts the node's row. */
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    siteId: uuid("site_id").$type<SiteId>().notNull(),
    profileId: uuid("profile_id").$type<ProfileId>().notNull(),
    skuId: text("sku_id").notNull(),
    hostname: text("hostname").notNull(),
    ipmiIp: text("ipmi_ip").notNull(),
    pxeMac: text("pxe_mac"),
    maasSystemId: text("maas_system_id"),
    /** The place of the host, as the onboarding request names it. The node gets the location when the onboarding inserts the node's row. */
    room: text("room"),
    rack: text("rack"),
    unit: integer("unit"),
    createdAt: createdAt(),
  },
  (t) => [
    index("node_onboardings_batch_idx").on(t.batchId),
    index("node_onboardings_machine_idx").on(t.siteId, t.maasSystemId),
    index("node_onboardings_node_idx").on(t.nodeId, t.createdAt),
    index("node_onboardings_hostname_idx").on(t.hostname),
    index("node_onboardings_mac_idx").on(t.pxeMac).where(sql`"pxe_mac" is not null`),
  ],
);
export type NodeOnboarding = typeof nodeOnboardings.$inferSelect;
