CREATE TABLE "node_decommissions" (
	"decommission_id" uuid PRIMARY KEY NOT NULL,
	"node_id" uuid NOT NULL,
	"site_id" uuid,
	"hostname" text NOT NULL,
	"maas_system_id" text,
	"mode" text NOT NULL,
	"reason" text NOT NULL,
	"prior_status" text NOT NULL,
	"forced_at" timestamp with time zone,
	"forced_by" text,
	"forced_reason" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "node_decommissions_mode_check" CHECK ("mode" in ('drain', 'remove')),
	CONSTRAINT "node_decommissions_prior_status_check" CHECK ("prior_status" in ('bootstrap_issued', 'enrolling', 'active', 'offline', 'quarantined', 'draining', 'retired', 'removing', 'deleted'))
);
--> statement-breakpoint
ALTER TABLE "node_decommissions" ADD CONSTRAINT "node_decommissions_decommission_id_workflows_id_fk" FOREIGN KEY ("decommission_id") REFERENCES "public"."workflows"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "node_decommissions_node_idx" ON "node_decommissions" USING btree ("node_id");