CREATE TABLE "node_probes" (
	"node_id" uuid NOT NULL,
	"name" text NOT NULL,
	"probe" jsonb NOT NULL,
	"generation" integer NOT NULL,
	"host" text,
	"status" text DEFAULT 'Unknown' NOT NULL,
	"successes" integer DEFAULT 0 NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"next_at" timestamp with time zone NOT NULL,
	"claim" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "node_probes_node_id_name_pk" PRIMARY KEY("node_id","name"),
	CONSTRAINT "node_probes_status_check" CHECK ("status" in ('True', 'False', 'Unknown'))
);
--> statement-breakpoint
CREATE TABLE "power_actions" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"node_id" uuid NOT NULL,
	"hostname" text NOT NULL,
	"generation" integer NOT NULL,
	"site_id" uuid NOT NULL,
	"maas_system_id" text NOT NULL,
	"allocation_id" uuid,
	"tenant" text,
	"requester_tenant" text,
	"for_cleaning" boolean DEFAULT false NOT NULL,
	"verb" text NOT NULL,
	"immediate" boolean NOT NULL,
	"state" text DEFAULT 'running' NOT NULL,
	"requested_by" text NOT NULL,
	"reason" text NOT NULL,
	"requested_at" timestamp with time zone DEFAULT now() NOT NULL,
	"deadline_at" timestamp with time zone NOT NULL,
	"boot_id" text,
	"shutdown_asked_at" timestamp with time zone,
	"shutdown_accepted_at" timestamp with time zone,
	"off_asked_at" timestamp with time zone,
	"on_asked_at" timestamp with time zone,
	"off_seen_at" timestamp with time zone,
	"wait_reason" text,
	"error_code" text,
	"error_message" text,
	"finished_at" timestamp with time zone,
	"wake_at" timestamp with time zone DEFAULT now() NOT NULL,
	"claimed_until" timestamp with time zone,
	"fence" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "power_actions_verb_check" CHECK ("verb" in ('on', 'off', 'cycle', 'reboot')),
	CONSTRAINT "power_actions_state_check" CHECK ("state" in ('running', 'done', 'failed', 'superseded')),
	CONSTRAINT "power_actions_error_check" CHECK ("error_code" in ('power_action_failed', 'power_state_unknown', 'agent_unreachable', 'machine_not_usable', 'bmc_login_refused', 'maas_refused')),
	CONSTRAINT "power_actions_finished_check" CHECK (("state" = 'running') = ("finished_at" is null))
);
--> statement-breakpoint
CREATE TABLE "ssh_key_groups" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"tenant" text NOT NULL,
	"name" text NOT NULL,
	"description" text DEFAULT '' NOT NULL,
	"key_ids" uuid[] NOT NULL,
	"sites" uuid[],
	"created_by" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "ssh_keys" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"tenant" text NOT NULL,
	"name" text NOT NULL,
	"public_key" text NOT NULL,
	"fingerprint" text NOT NULL,
	"sites" uuid[],
	"created_by" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "allocations" ADD COLUMN "ssh_key_ids" uuid[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "allocations" ADD COLUMN "ssh_key_group_ids" uuid[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "allocations" ADD COLUMN "keys_due" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "allocations" ADD COLUMN "keys_task_id" uuid;--> statement-breakpoint
ALTER TABLE "allocations" ADD COLUMN "name" text;--> statement-breakpoint
ALTER TABLE "allocations" ADD COLUMN "description" text;--> statement-breakpoint
ALTER TABLE "allocations" ADD COLUMN "allow_unhealthy_machine" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "allocations" ADD COLUMN "unhealthy_because" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "probes" jsonb DEFAULT '[]'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "node_conditions" ADD COLUMN "changes" timestamp with time zone[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "node_conditions" ADD COLUMN "flapping_since" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "node_probes" ADD CONSTRAINT "node_probes_node_id_nodes_id_fk" FOREIGN KEY ("node_id") REFERENCES "public"."nodes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "node_probes_next_at_idx" ON "node_probes" USING btree ("next_at");--> statement-breakpoint
CREATE UNIQUE INDEX "power_actions_running_node_key" ON "power_actions" USING btree ("node_id") WHERE "state" = 'running';--> statement-breakpoint
CREATE INDEX "power_actions_node_idx" ON "power_actions" USING btree ("node_id","requested_at");--> statement-breakpoint
CREATE INDEX "power_actions_due_idx" ON "power_actions" USING btree ("wake_at") WHERE "state" = 'running';--> statement-breakpoint
CREATE INDEX "power_actions_age_idx" ON "power_actions" USING btree ("finished_at") WHERE "finished_at" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "ssh_key_groups_name_key" ON "ssh_key_groups" USING btree ("tenant","name");--> statement-breakpoint
CREATE UNIQUE INDEX "ssh_keys_name_key" ON "ssh_keys" USING btree ("tenant","name");--> statement-breakpoint
CREATE UNIQUE INDEX "ssh_keys_fingerprint_key" ON "ssh_keys" USING btree ("tenant","fingerprint");--> statement-breakpoint
CREATE INDEX "allocations_keys_idx" ON "allocations" USING btree ("id") WHERE "status" = 'active' and ("keys_due" or "keys_task_id" is not null);--> statement-breakpoint
CREATE INDEX "node_conditions_flapping_idx" ON "node_conditions" USING btree ("node_id","type") WHERE flapping_since is not null;