CREATE TABLE "condition_watch" (
	"id" integer PRIMARY KEY DEFAULT 1 NOT NULL,
	"looked_until" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "condition_watch_one_row" CHECK ("id" = 1)
);
--> statement-breakpoint
CREATE INDEX "node_conditions_expires_at_idx" ON "node_conditions" USING btree ("expires_at") WHERE expires_at is not null;--> statement-breakpoint
-- Words of before conditions had lives: an agent that is there says this again within minutes.
UPDATE "node_conditions" SET "expires_at" = now() + interval '10 minutes' WHERE "type" = 'agent.healthy' AND "expires_at" IS NULL;
