ALTER TABLE "allocations" ADD COLUMN "reinstalled_generation" integer;--> statement-breakpoint
ALTER TABLE "allocations" ADD COLUMN "disks_before" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
UPDATE "allocations" a SET "reinstalled_generation" = (
  SELECT max(d."reinstalled_generation") FROM "node_decommissions" d
  WHERE d."node_id" = a."node_id" AND d."created_at" >= a."created_at"
) WHERE a."status" <> 'ended';