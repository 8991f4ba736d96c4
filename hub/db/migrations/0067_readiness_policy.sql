ALTER TABLE "maas_site_profiles" ADD COLUMN "readiness_policy" jsonb DEFAULT '[]'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "node_conditions" ADD COLUMN "received_at" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "node_conditions" ADD COLUMN "changed_at" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "nodes" ADD COLUMN "generation_began_at" timestamp with time zone DEFAULT now() NOT NULL;