CREATE TABLE "maas_roce_links" (
	"site_id" uuid NOT NULL,
	"maas_system_id" text NOT NULL,
	"interface" text NOT NULL,
	"ip_address" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "maas_roce_links_site_id_maas_system_id_interface_ip_address_pk" PRIMARY KEY("site_id","maas_system_id","interface","ip_address")
);
--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "roce_required" boolean DEFAULT true NOT NULL;--> statement-breakpoint
ALTER TABLE "maas_roce_links" ADD CONSTRAINT "maas_roce_links_site_id_maas_sites_id_fk" FOREIGN KEY ("site_id") REFERENCES "public"."maas_sites"("id") ON DELETE no action ON UPDATE no action;
--> statement-breakpoint
-- What rows name now was linked by us: without this, an address that is moved after the upgrade would count as somebody else's.
INSERT INTO "maas_roce_links" ("site_id", "maas_system_id", "interface", "ip_address")
SELECT DISTINCT o."site_id", o."maas_system_id", a."interface", split_part(a."ipv4_cidr", '/', 1)
FROM "maas_roce_assignments" a
JOIN "node_onboardings" o ON o."site_id" = a."site_id" AND o."hostname" = a."hostname"
WHERE o."maas_system_id" IS NOT NULL;
