ALTER TABLE "node_conditions" ADD COLUMN "changes" timestamp with time zone[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "node_conditions" ADD COLUMN "flapping_since" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "node_conditions_flapping_idx" ON "node_conditions" USING btree ("node_id","type") WHERE flapping_since is not null;