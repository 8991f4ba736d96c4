ALTER TABLE "node_health_overrides" ADD COLUMN "mode" text DEFAULT 'merge' NOT NULL;--> statement-breakpoint
ALTER TABLE "node_health_overrides" ADD COLUMN "alerts" jsonb;--> statement-breakpoint
ALTER TABLE "node_health_overrides" ADD COLUMN "prevents_allocations" boolean DEFAULT true NOT NULL;--> statement-breakpoint
ALTER TABLE "node_health_overrides" ADD COLUMN "expires_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "node_health_overrides" ADD COLUMN "revision" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
CREATE INDEX "node_health_overrides_expiry_idx" ON "node_health_overrides" USING btree ("expires_at") WHERE "expires_at" is not null;--> statement-breakpoint
ALTER TABLE "node_health_overrides" ADD CONSTRAINT "node_health_overrides_mode_check" CHECK ("mode" in ('merge', 'replace'));