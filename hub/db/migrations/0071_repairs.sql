CREATE TABLE "repair_cases" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"node_id" uuid NOT NULL,
	"site_id" uuid,
	"hostname" text NOT NULL,
	"mode" text NOT NULL,
	"state" text NOT NULL,
	"state_since" timestamp with time zone DEFAULT now() NOT NULL,
	"category" text NOT NULL,
	"summary" text NOT NULL,
	"details" text,
	"finding" text,
	"allocation_id" uuid,
	"tenant" text,
	"opened_by" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"attempt" integer DEFAULT 0 NOT NULL,
	"claimed_by" text,
	"repair_tenant" text,
	"claim_until" timestamp with time zone,
	"access_allocation_id" uuid,
	"outcome" text,
	"worked_until" timestamp with time zone,
	"validated_at" timestamp with time zone,
	"validated_by" text,
	"held_back" text,
	"evidence" text[] DEFAULT '{}' NOT NULL,
	"release_on_failure" boolean DEFAULT false NOT NULL,
	"ended_at" timestamp with time zone,
	CONSTRAINT "repair_cases_mode_check" CHECK ("mode" in ('full', 'online')),
	CONSTRAINT "repair_cases_state_check" CHECK ("state" in ('reported', 'requested', 'claimed', 'repaired', 'failed', 'escalated', 'closed', 'abandoned')),
	CONSTRAINT "repair_cases_category_check" CHECK ("category" in ('Hardware', 'Network', 'Performance', 'Storage', 'Software', 'Other')),
	CONSTRAINT "repair_cases_outcome_check" CHECK ("outcome" in ('completed', 'failed', 'in_progress', 'manual', 'unknown')),
	CONSTRAINT "repair_cases_held_back_check" CHECK ("held_back" in ('breaker', 'attempts_spent', 'no_new_evidence')),
	CONSTRAINT "repair_cases_ended_check" CHECK (("state" not in ('closed', 'abandoned')) = ("ended_at" is null)),
	CONSTRAINT "repair_cases_claimed_check" CHECK ("state" <> 'claimed' or ("claimed_by" is not null and "claim_until" is not null))
);
--> statement-breakpoint
CREATE TABLE "repair_events" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"repair_id" uuid NOT NULL,
	"node_id" uuid NOT NULL,
	"type" text NOT NULL,
	"attempt" integer NOT NULL,
	"actor" text NOT NULL,
	"message" text NOT NULL,
	"details" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"occurred_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "repair_events_type_check" CHECK ("type" in ('opened', 'reported_again', 'held_back', 'requested', 'request_withdrawn', 'claimed', 'claim_extended', 'access_given', 'completed', 'failed', 'lapsed', 'handed_over', 'escalated', 'validation_passed', 'validation_failed', 'became_full', 'closed', 'abandoned'))
);
--> statement-breakpoint
ALTER TABLE "maas_sites" ADD COLUMN "auto_repair" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "maas_sites" ADD COLUMN "repair_attempt_limit" integer DEFAULT 3 NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX "repair_cases_open_node_key" ON "repair_cases" USING btree ("node_id") WHERE "ended_at" is null;--> statement-breakpoint
CREATE INDEX "repair_cases_opened_idx" ON "repair_cases" USING btree ("created_at","id");--> statement-breakpoint
CREATE INDEX "repair_cases_node_idx" ON "repair_cases" USING btree ("node_id","created_at");--> statement-breakpoint
CREATE INDEX "repair_cases_age_idx" ON "repair_cases" USING btree ("ended_at") WHERE "ended_at" is not null;--> statement-breakpoint
CREATE INDEX "repair_events_repair_idx" ON "repair_events" USING btree ("repair_id","id");--> statement-breakpoint
CREATE INDEX "repair_events_attempts_idx" ON "repair_events" USING btree ("node_id","occurred_at") WHERE "type" = 'claimed';