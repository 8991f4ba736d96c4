CREATE TABLE "reconciler_breakers" (
	"site_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"tripped_at" timestamp with time zone,
	"would_move" integer NOT NULL,
	"move_limit" integer NOT NULL,
	"in_service" integer NOT NULL,
	"node_ids" uuid[] NOT NULL,
	"reset_at" timestamp with time zone,
	"reset_by" text,
	"reset_reason" text,
	"accept_until" timestamp with time zone,
	CONSTRAINT "reconciler_breakers_site_id_kind_pk" PRIMARY KEY("site_id","kind")
);
--> statement-breakpoint
ALTER TABLE "maas_site_watches" ADD COLUMN "sweep_requested_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "node_maas_state" ADD COLUMN "reconcile_due_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "node_maas_state" ADD COLUMN "drift_acknowledged" jsonb;--> statement-breakpoint
ALTER TABLE "node_maas_state" ADD COLUMN "quarantined_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "node_maas_state_due_idx" ON "node_maas_state" USING btree ("site_id") WHERE "reconcile_due_at" is not null;--> statement-breakpoint
CREATE INDEX "node_maas_state_drift_idx" ON "node_maas_state" USING btree ("site_id") WHERE "drift_detected";--> statement-breakpoint
-- What was followed so far was never judged.
UPDATE "node_maas_state" SET "last_reconciled_at" = NULL;
