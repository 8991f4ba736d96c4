ALTER TABLE "node_decommissions" DROP CONSTRAINT "node_decommissions_mode_check";--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "turnover_mode" text DEFAULT 'soft_reset' NOT NULL;--> statement-breakpoint
ALTER TABLE "nodes" ADD COLUMN "quarantined_by" text;--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD CONSTRAINT "maas_site_profiles_turnover_mode_check" CHECK ("turnover_mode" in ('soft_reset', 'reimage'));--> statement-breakpoint
ALTER TABLE "node_decommissions" ADD CONSTRAINT "node_decommissions_mode_check" CHECK ("mode" in ('drain', 'remove', 'release', 'soft_reset', 'reimage'));