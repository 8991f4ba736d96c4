CREATE TABLE "maas_credential_uses" (
	"path" text PRIMARY KEY NOT NULL,
	"site_id" uuid NOT NULL,
	"last_used_at" timestamp with time zone,
	"last_worked_at" timestamp with time zone,
	"last_failed_at" timestamp with time zone,
	"last_failure_code" text,
	"last_failure_message" text,
	"warned_of" text,
	"warned_at" timestamp with time zone,
	CONSTRAINT "maas_credential_uses_warned_of_check" CHECK ("warned_of" in ('unused', 'failing'))
);
--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "pxe_iface" text;--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "pxe_vlan_vid" integer;--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "commissioning_scripts" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "testing_scripts" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "maas_credential_uses" ADD CONSTRAINT "maas_credential_uses_site_id_maas_sites_id_fk" FOREIGN KEY ("site_id") REFERENCES "public"."maas_sites"("id") ON DELETE no action ON UPDATE no action;