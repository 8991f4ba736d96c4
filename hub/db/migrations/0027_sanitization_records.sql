CREATE TABLE "sanitization_records" (
	"record_id" uuid PRIMARY KEY NOT NULL,
	"node_id" uuid NOT NULL,
	"sequence" integer NOT NULL,
	"hostname" text NOT NULL,
	"allocation_id" uuid,
	"tenant" text,
	"decommission_id" uuid NOT NULL,
	"mode" text NOT NULL,
	"trust" text NOT NULL,
	"verdict" text NOT NULL,
	"text" text NOT NULL,
	"record_sha256" text NOT NULL,
	"signed_by_agent" boolean NOT NULL,
	"agent_signature" text,
	"agent_certificate_pem" text,
	"countersignature" text NOT NULL,
	"hub_signature" text NOT NULL,
	"order_key" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "sanitization_records_chain_key" UNIQUE("node_id","sequence"),
	CONSTRAINT "sanitization_records_trust_check" CHECK ("trust" in ('in_place', 'reimaged', 'reimaged_cold')),
	CONSTRAINT "sanitization_records_verdict_check" CHECK ("verdict" in ('clean', 'not_clean', 'incomplete')),
	CONSTRAINT "sanitization_records_signed_check" CHECK ("signed_by_agent" = ("agent_signature" is not null) and "signed_by_agent" = ("agent_certificate_pem" is not null)),
	CONSTRAINT "sanitization_records_unsigned_check" CHECK ("signed_by_agent" or "verdict" <> 'clean')
);
--> statement-breakpoint
CREATE INDEX "sanitization_records_created_idx" ON "sanitization_records" USING btree ("created_at","record_id");--> statement-breakpoint
CREATE INDEX "sanitization_records_allocation_idx" ON "sanitization_records" USING btree ("allocation_id");--> statement-breakpoint
CREATE FUNCTION "sanitization_records_refuse"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'sanitization records are never changed or removed' USING ERRCODE = 'restrict_violation';
END $$;--> statement-breakpoint
CREATE TRIGGER "sanitization_records_rows" BEFORE UPDATE OR DELETE ON "sanitization_records" FOR EACH ROW EXECUTE FUNCTION "sanitization_records_refuse"();--> statement-breakpoint
CREATE TRIGGER "sanitization_records_table" BEFORE TRUNCATE ON "sanitization_records" FOR EACH STATEMENT EXECUTE FUNCTION "sanitization_records_refuse"();--> statement-breakpoint
ALTER TABLE "sanitization_records" ENABLE ALWAYS TRIGGER "sanitization_records_rows";--> statement-breakpoint
ALTER TABLE "sanitization_records" ENABLE ALWAYS TRIGGER "sanitization_records_table";
