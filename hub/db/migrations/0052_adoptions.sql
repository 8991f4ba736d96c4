CREATE TABLE "node_adoptions" (
	"node_id" uuid PRIMARY KEY NOT NULL,
	"site_id" uuid NOT NULL,
	"profile_id" uuid NOT NULL,
	"adopted_by" text NOT NULL,
	"past_unknown" boolean NOT NULL,
	"differences" jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "nodes" DROP CONSTRAINT "nodes_onboarding_mode_check";--> statement-breakpoint
ALTER TABLE "node_adoptions" ADD CONSTRAINT "node_adoptions_node_id_nodes_id_fk" FOREIGN KEY ("node_id") REFERENCES "public"."nodes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "node_adoptions" ADD CONSTRAINT "node_adoptions_profile_id_maas_site_profiles_id_fk" FOREIGN KEY ("profile_id") REFERENCES "public"."maas_site_profiles"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "nodes" ADD CONSTRAINT "nodes_onboarding_mode_check" CHECK ("onboarding_mode" in ('maas', 'manual', 'adopted'));