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
ALTER TABLE "maas_site_profiles" ADD COLUMN "probes" jsonb DEFAULT '[]'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "node_conditions" ADD COLUMN "changes" timestamp with time zone[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "node_conditions" ADD COLUMN "flapping_since" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "node_probes" ADD CONSTRAINT "node_probes_node_id_nodes_id_fk" FOREIGN KEY ("node_id") REFERENCES "public"."nodes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "node_probes_next_at_idx" ON "node_probes" USING btree ("next_at");--> statement-breakpoint
CREATE INDEX "node_conditions_flapping_idx" ON "node_conditions" USING btree ("node_id","type") WHERE flapping_since is not null;