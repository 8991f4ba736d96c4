ALTER TABLE "maas_site_profiles" ADD COLUMN "scratch_folders" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "data_shares" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "weka_prefixes" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "clear_free_space" boolean DEFAULT false NOT NULL;