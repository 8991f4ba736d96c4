CREATE TABLE "sanitization_validations" (
	"id" uuid PRIMARY KEY NOT NULL,
	"record_id" uuid NOT NULL,
	"record_sha256" text NOT NULL,
	"validated_by" text NOT NULL,
	"role" text NOT NULL,
	"is_person" boolean NOT NULL,
	"title" text,
	"result" text NOT NULL,
	"reason" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "sanitization_validations_role_check" CHECK ("role" in ('viewer', 'operator', 'admin', 'provisioner', 'tenant', 'repair')),
	CONSTRAINT "sanitization_validations_result_check" CHECK ("result" in ('accepted', 'rejected'))
);
--> statement-breakpoint
CREATE INDEX "sanitization_validations_record_idx" ON "sanitization_validations" USING btree ("record_id","created_at");
--> statement-breakpoint
CREATE FUNCTION "sanitization_validations_refuse"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'validations of sanitization records are never changed or removed' USING ERRCODE = 'restrict_violation';
END $$;--> statement-breakpoint
CREATE TRIGGER "sanitization_validations_rows" BEFORE UPDATE OR DELETE ON "sanitization_validations" FOR EACH ROW EXECUTE FUNCTION "sanitization_validations_refuse"();--> statement-breakpoint
CREATE TRIGGER "sanitization_validations_table" BEFORE TRUNCATE ON "sanitization_validations" FOR EACH STATEMENT EXECUTE FUNCTION "sanitization_validations_refuse"();--> statement-breakpoint
ALTER TABLE "sanitization_validations" ENABLE ALWAYS TRIGGER "sanitization_validations_rows";--> statement-breakpoint
ALTER TABLE "sanitization_validations" ENABLE ALWAYS TRIGGER "sanitization_validations_table";
