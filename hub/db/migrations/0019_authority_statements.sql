CREATE TABLE "authority_statements" (
	"sequence" integer PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"generation" integer NOT NULL,
	"ca_pem" text NOT NULL,
	"order_key" text NOT NULL,
	"signature" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "authority_statements_sequence_check" CHECK ("sequence" > 0)
);
--> statement-breakpoint
ALTER TABLE "agent_sessions" ADD COLUMN "trust_sequence" integer;