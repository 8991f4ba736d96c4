ALTER TABLE "api_tokens" ADD COLUMN "last_four" text;--> statement-breakpoint
ALTER TABLE "api_tokens" ADD COLUMN "previous_sha256" text;--> statement-breakpoint
ALTER TABLE "api_tokens" ADD COLUMN "previous_until" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "api_tokens" ADD COLUMN "created_by" text;--> statement-breakpoint
ALTER TABLE "api_tokens" ADD COLUMN "expires_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "api_tokens" ADD COLUMN "last_used_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "api_tokens" ADD CONSTRAINT "api_tokens_previous_sha256_unique" UNIQUE("previous_sha256");