ALTER TABLE "workflows" ADD COLUMN "told_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "workflows" ADD COLUMN "untold" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "domain_events_progress_idx" ON "domain_events" USING btree ("occurred_at") WHERE "type" = 'operation.progressed';