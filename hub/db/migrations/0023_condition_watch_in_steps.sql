ALTER TABLE "condition_watch" ADD COLUMN "looked_at" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "condition_watch" ADD COLUMN "grace_until" timestamp with time zone;--> statement-breakpoint
-- An upgrade is an outage like any other: agents have their grace after it.
UPDATE "condition_watch" SET "looked_at" = "looked_until";
