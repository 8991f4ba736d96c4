DROP INDEX "readiness_signals_node_idx";--> statement-breakpoint
CREATE INDEX "readiness_signals_of_node_idx" ON "readiness_signals" USING btree ("node_id","source","received_at","id");