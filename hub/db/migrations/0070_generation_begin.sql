CREATE INDEX "node_maas_state_system_idx" ON "node_maas_state" USING btree ("maas_system_id");--> statement-breakpoint
-- Migration 0067 gave all existing nodes the time of the upgrade. The node's generation began when its enrollment token was made.
UPDATE "nodes" SET "generation_began_at" = coalesce(
  (select max(t.created_at) from "enrollment_tokens" t where t.node_id = "nodes"."id" and t.generation = "nodes"."generation"),
  "nodes"."created_at"
);
