DROP INDEX "node_onboardings_node_idx";--> statement-breakpoint
DROP INDEX "nodes_status_idx";--> statement-breakpoint
ALTER TABLE "node_inventories" ADD COLUMN "search_terms" jsonb GENERATED ALWAYS AS (lower((jsonb_path_query_array(inventory, '$.interfaces[*].mac') || jsonb_path_query_array(inventory, '$.disks[*].serial') || jsonb_path_query_array(inventory, '$.system.uuid'))::text)::jsonb) STORED;--> statement-breakpoint
ALTER TABLE "node_onboardings" ADD COLUMN "room" text;--> statement-breakpoint
ALTER TABLE "node_onboardings" ADD COLUMN "rack" text;--> statement-breakpoint
ALTER TABLE "node_onboardings" ADD COLUMN "unit" integer;--> statement-breakpoint
ALTER TABLE "nodes" ADD COLUMN "room" text;--> statement-breakpoint
ALTER TABLE "nodes" ADD COLUMN "rack" text;--> statement-breakpoint
ALTER TABLE "nodes" ADD COLUMN "unit" integer;--> statement-breakpoint
ALTER TABLE "nodes" ADD COLUMN "location_version" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "node_decommissions_hostname_idx" ON "node_decommissions" USING btree ("hostname");--> statement-breakpoint
CREATE INDEX "node_inventories_search_idx" ON "node_inventories" USING gin ("search_terms");--> statement-breakpoint
CREATE INDEX "node_onboardings_hostname_idx" ON "node_onboardings" USING btree ("hostname");--> statement-breakpoint
CREATE INDEX "node_onboardings_mac_idx" ON "node_onboardings" USING btree ("pxe_mac") WHERE "pxe_mac" is not null;--> statement-breakpoint
CREATE INDEX "nodes_hostname_idx" ON "nodes" USING btree ("hostname","id");--> statement-breakpoint
CREATE INDEX "nodes_site_idx" ON "nodes" USING btree ("site_id","hostname","id");--> statement-breakpoint
CREATE INDEX "nodes_sku_idx" ON "nodes" USING btree ("sku","hostname","id");--> statement-breakpoint
CREATE INDEX "nodes_location_idx" ON "nodes" USING btree (coalesce("room", ''),coalesce("rack", ''),coalesce("unit", 0),"hostname","id");--> statement-breakpoint
CREATE INDEX "nodes_rack_idx" ON "nodes" USING btree ("rack") WHERE "rack" is not null;--> statement-breakpoint
CREATE INDEX "nodes_created_idx" ON "nodes" USING btree ("created_at","id");--> statement-breakpoint
CREATE INDEX "tasks_closing_idx" ON "tasks" USING btree ("node_id","created_at","id") WHERE "type" in ('node.drain', 'node.undrain');--> statement-breakpoint
CREATE INDEX "workflows_requested_idx" ON "workflows" USING btree ("requested_at","id");--> statement-breakpoint
CREATE INDEX "workflows_status_requested_idx" ON "workflows" USING btree ("status","requested_at","id");--> statement-breakpoint
CREATE INDEX "workflows_site_requested_idx" ON "workflows" USING btree ("site_id","requested_at","id");--> statement-breakpoint
CREATE INDEX "workflows_failed_idx" ON "workflows" USING btree ("failure_class") WHERE "status" in ('failed_retryable', 'failed_manual_intervention');--> statement-breakpoint
CREATE INDEX "node_onboardings_node_idx" ON "node_onboardings" USING btree ("node_id","created_at");--> statement-breakpoint
CREATE INDEX "nodes_status_idx" ON "nodes" USING btree ("status","hostname","id");--> statement-breakpoint
ALTER TABLE "nodes" ADD CONSTRAINT "nodes_unit_check" CHECK ("unit" is null or "rack" is not null);