CREATE TABLE "node_identity_bars" (
	"node_id" uuid PRIMARY KEY NOT NULL,
	"generation" integer NOT NULL,
	"evidence" text NOT NULL,
	"details" jsonb NOT NULL,
	"quarantined" boolean NOT NULL,
	"barred_at" timestamp with time zone NOT NULL,
	"healed_at" timestamp with time zone
);
--> statement-breakpoint
ALTER TABLE "agent_sessions" ADD COLUMN "displaced_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "node_certificates" ADD COLUMN "pem" text;--> statement-breakpoint
ALTER TABLE "node_certificates" ADD COLUMN "first_used_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "node_certificates" ADD COLUMN "replaced_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "node_certificates" ADD COLUMN "replaced_seen_at" timestamp with time zone;--> statement-breakpoint
UPDATE "node_certificates" SET "first_used_at" = "issued_at";
