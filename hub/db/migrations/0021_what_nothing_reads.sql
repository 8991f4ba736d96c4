DROP INDEX "workflows_due_idx";--> statement-breakpoint
CREATE INDEX "workflows_due_idx" ON "workflows" USING btree ("wake_at") WHERE "status" in ('pending', 'running', 'compensating') and "wake_at" is not null;--> statement-breakpoint
ALTER TABLE "maas_credential_uses" DROP COLUMN "warned_at";--> statement-breakpoint
ALTER TABLE "maas_site_profiles" DROP COLUMN "release_fallback_no_erase";--> statement-breakpoint
ALTER TABLE "workflows" DROP COLUMN "priority";