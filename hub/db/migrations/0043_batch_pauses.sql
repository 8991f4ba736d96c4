ALTER TABLE "onboarding_batches" ADD COLUMN "stop_after_failures" integer;--> statement-breakpoint
ALTER TABLE "onboarding_batches" ADD COLUMN "paused_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "onboarding_batches" ADD COLUMN "paused_by" text;--> statement-breakpoint
ALTER TABLE "onboarding_batches" ADD COLUMN "paused_reason" text;--> statement-breakpoint
ALTER TABLE "onboarding_batches" ADD COLUMN "resumed_at" timestamp with time zone;