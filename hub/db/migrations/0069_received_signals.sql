CREATE TABLE "received_signals" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"sender" text NOT NULL,
	"signal_id" text NOT NULL,
	"content_sha256" text NOT NULL,
	"outcome" text NOT NULL,
	"detail" text,
	"named" jsonb NOT NULL,
	"node_id" uuid,
	"site_id" uuid,
	"sender_sites" uuid[],
	"generation" integer,
	"boot_id" text,
	"conditions" jsonb NOT NULL,
	"received_at" timestamp with time zone DEFAULT now() NOT NULL,
	"decided_at" timestamp with time zone,
	"parked_until" timestamp with time zone,
	CONSTRAINT "received_signals_outcome_check" CHECK ("outcome" in ('applied', 'parked', 'expired', 'stale', 'early', 'late', 'conflicting', 'reused', 'foreign')),
	CONSTRAINT "received_signals_parked_check" CHECK (("outcome" = 'parked') = ("decided_at" is null))
);
--> statement-breakpoint
CREATE TABLE "signal_senders" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"name" text NOT NULL,
	"sites" uuid[],
	"created_by" text NOT NULL,
	"last_used_at" timestamp with time zone,
	"revoked_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "signal_senders_name_unique" UNIQUE("name")
);
--> statement-breakpoint
CREATE UNIQUE INDEX "received_signals_id_key" ON "received_signals" USING btree ("sender","signal_id") WHERE "outcome" <> 'reused';--> statement-breakpoint
CREATE INDEX "received_signals_parked_idx" ON "received_signals" USING btree ("sender","parked_until") WHERE "outcome" = 'parked';--> statement-breakpoint
CREATE INDEX "received_signals_node_idx" ON "received_signals" USING btree ("node_id","received_at","id");--> statement-breakpoint
CREATE INDEX "received_signals_age_idx" ON "received_signals" USING btree ("received_at","id");