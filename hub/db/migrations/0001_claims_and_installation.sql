CREATE TABLE "installation" (
	"id" integer PRIMARY KEY DEFAULT 1 NOT NULL,
	"secret_store_id" uuid NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "installation_one_row" CHECK ("id" = 1)
);
--> statement-breakpoint
ALTER TABLE "workflow_events" ADD COLUMN "hub_id" uuid;--> statement-breakpoint
ALTER TABLE "workflow_events" ADD COLUMN "claimed_at" timestamp with time zone;