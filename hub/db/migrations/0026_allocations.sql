CREATE TABLE "allocations" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"node_id" uuid NOT NULL,
	"site_id" uuid,
	"hostname" text NOT NULL,
	"generation" integer NOT NULL,
	"tenant" text NOT NULL,
	"login_user" text NOT NULL,
	"ssh_keys" text[] NOT NULL,
	"grants_root" boolean NOT NULL,
	"labels" jsonb NOT NULL,
	"status" text NOT NULL,
	"error_code" text,
	"error_message" text,
	"grant_task_id" uuid,
	"decommission_id" uuid,
	"created_by" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"active_at" timestamp with time zone,
	"ends_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	"end_reason" text,
	"end_forced" boolean DEFAULT false NOT NULL,
	CONSTRAINT "allocations_status_check" CHECK ("status" in ('granting', 'active', 'failed', 'ending', 'ended')),
	CONSTRAINT "allocations_ended_check" CHECK (("status" = 'ended') = ("ended_at" is not null))
);
--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "soft_reset_after_root" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX "allocations_open_node_key" ON "allocations" USING btree ("node_id") WHERE "status" <> 'ended';--> statement-breakpoint
CREATE INDEX "allocations_open_status_idx" ON "allocations" USING btree ("status") WHERE "status" <> 'ended';--> statement-breakpoint
CREATE INDEX "allocations_node_idx" ON "allocations" USING btree ("node_id","created_at");--> statement-breakpoint
CREATE INDEX "allocations_created_idx" ON "allocations" USING btree ("created_at","id");--> statement-breakpoint
CREATE INDEX "allocations_age_idx" ON "allocations" USING btree ("ended_at") WHERE "ended_at" is not null;