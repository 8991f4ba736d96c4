ALTER TABLE "node_decommissions" DROP CONSTRAINT "node_decommissions_mode_check";--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "release_timeout_seconds" integer DEFAULT 14400 NOT NULL;--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ALTER COLUMN "release_timeout_seconds" DROP DEFAULT;--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "power_off_timeout_seconds" integer DEFAULT 900 NOT NULL;--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ALTER COLUMN "power_off_timeout_seconds" DROP DEFAULT;--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "retired_release_after_seconds" integer;--> statement-breakpoint
ALTER TABLE "node_decommissions" ADD COLUMN "released_generation" integer;--> statement-breakpoint
ALTER TABLE "node_decommissions" ADD CONSTRAINT "node_decommissions_mode_check" CHECK ("mode" in ('drain', 'remove', 'release'));