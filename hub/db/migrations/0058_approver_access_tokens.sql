ALTER TABLE "approvals" ADD COLUMN "approver_claims" jsonb;--> statement-breakpoint
ALTER TABLE "approvals" ADD COLUMN "approver_until" timestamp with time zone;