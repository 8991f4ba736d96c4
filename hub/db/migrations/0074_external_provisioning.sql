CREATE TABLE "external_attempts" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"node_id" uuid NOT NULL,
	"site_id" uuid,
	"number" integer NOT NULL,
	"generation" integer NOT NULL,
	"profile_id" uuid,
	"provisioner" text NOT NULL,
	"holder" text NOT NULL,
	"state" text NOT NULL,
	"step" text,
	"percent" integer,
	"reason" text NOT NULL,
	"failure_code" text,
	"facts" jsonb,
	"lease_seconds" integer NOT NULL,
	"ready_within_seconds" integer NOT NULL,
	"begun_at" timestamp with time zone DEFAULT now() NOT NULL,
	"heard_at" timestamp with time zone DEFAULT now() NOT NULL,
	"lease_expires_at" timestamp with time zone NOT NULL,
	"deadline_at" timestamp with time zone NOT NULL,
	"adopted" boolean DEFAULT false NOT NULL,
	"provisioned_at" timestamp with time zone,
	"changed_at" timestamp with time zone DEFAULT now() NOT NULL,
	"late_reports" integer DEFAULT 0 NOT NULL,
	"last_late_report" text,
	CONSTRAINT "external_attempts_state_check" CHECK ("state" in ('begun', 'in_progress', 'verifying', 'completed', 'failed', 'lost', 'late', 'unverified', 'abandoned')),
	CONSTRAINT "external_attempts_number_check" CHECK ("number" > 0)
);
--> statement-breakpoint
ALTER TABLE "nodes" DROP CONSTRAINT "nodes_onboarding_mode_check";--> statement-breakpoint
ALTER TABLE "nodes" ADD COLUMN "network_owned_by" text DEFAULT 'muster' NOT NULL;--> statement-breakpoint
ALTER TABLE "nodes" ADD COLUMN "runs_agent" boolean DEFAULT true NOT NULL;--> statement-breakpoint
ALTER TABLE "external_attempts" ADD CONSTRAINT "external_attempts_node_id_nodes_id_fk" FOREIGN KEY ("node_id") REFERENCES "public"."nodes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "external_attempts" ADD CONSTRAINT "external_attempts_profile_id_maas_site_profiles_id_fk" FOREIGN KEY ("profile_id") REFERENCES "public"."maas_site_profiles"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "external_attempts_number_key" ON "external_attempts" USING btree ("node_id","number");--> statement-breakpoint
CREATE INDEX "external_attempts_begun_idx" ON "external_attempts" USING btree ("begun_at","id");--> statement-breakpoint
CREATE INDEX "external_attempts_age_idx" ON "external_attempts" USING btree ("changed_at");--> statement-breakpoint
CREATE INDEX "external_attempts_waiting_idx" ON "external_attempts" USING btree ("deadline_at") WHERE "state" in ('begun', 'in_progress', 'verifying', 'unverified', 'lost');--> statement-breakpoint
ALTER TABLE "nodes" ADD CONSTRAINT "nodes_network_owned_by_check" CHECK ("network_owned_by" in ('operator', 'muster'));--> statement-breakpoint
ALTER TABLE "nodes" ADD CONSTRAINT "nodes_onboarding_mode_check" CHECK ("onboarding_mode" in ('maas', 'manual', 'adopted', 'external'));