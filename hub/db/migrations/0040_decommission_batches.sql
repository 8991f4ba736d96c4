ALTER TABLE "onboarding_batches" ADD COLUMN "kind" text DEFAULT 'onboarding' NOT NULL;--> statement-breakpoint
ALTER TABLE "onboarding_batches" ADD COLUMN "operation" jsonb;--> statement-breakpoint
ALTER TABLE "onboarding_batches" ADD COLUMN "filter" jsonb;--> statement-breakpoint
ALTER TABLE "onboarding_batches" ADD COLUMN "refusals" jsonb DEFAULT '[]'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "onboarding_batches" ADD CONSTRAINT "onboarding_batches_kind_check" CHECK ("kind" in ('onboarding', 'decommission'));