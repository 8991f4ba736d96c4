CREATE TABLE "audit_seals" (
	"sequence" bigint PRIMARY KEY NOT NULL,
	"audit_id" bigint NOT NULL,
	"previous_sha256" text NOT NULL,
	"entry_sha256" text NOT NULL,
	"sealed_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "audit_seals_audit_key" UNIQUE("audit_id")
);
--> statement-breakpoint
ALTER TABLE "audit_logs" ADD COLUMN "via" text;--> statement-breakpoint
ALTER TABLE "audit_logs" ADD COLUMN "address" text;--> statement-breakpoint
ALTER TABLE "audit_logs" ADD COLUMN "outcome" text DEFAULT 'done' NOT NULL;--> statement-breakpoint
ALTER TABLE "audit_logs" ADD COLUMN "error_code" text;--> statement-breakpoint
ALTER TABLE "audit_logs" ADD COLUMN "site_id" uuid;--> statement-breakpoint
ALTER TABLE "audit_logs" ADD COLUMN "content_sha256" text;--> statement-breakpoint
ALTER TABLE "audit_logs" ADD COLUMN "object_kind" text GENERATED ALWAYS AS (split_part("target", '/', 1)) STORED;--> statement-breakpoint
CREATE INDEX "audit_logs_actor_idx" ON "audit_logs" USING btree ("actor","id");--> statement-breakpoint
CREATE INDEX "audit_logs_action_idx" ON "audit_logs" USING btree ("action","id");--> statement-breakpoint
CREATE INDEX "audit_logs_site_idx" ON "audit_logs" USING btree ("site_id","id");--> statement-breakpoint
CREATE INDEX "audit_logs_request_idx" ON "audit_logs" USING btree ("request_id");--> statement-breakpoint
CREATE INDEX "audit_logs_kind_idx" ON "audit_logs" USING btree ("object_kind","id");--> statement-breakpoint
ALTER TABLE "audit_logs" ADD CONSTRAINT "audit_logs_via_check" CHECK ("via" in ('token', 'session', 'oidc', 'none'));--> statement-breakpoint
ALTER TABLE "audit_logs" ADD CONSTRAINT "audit_logs_outcome_check" CHECK ("outcome" in ('done', 'refused'));--> statement-breakpoint
CREATE FUNCTION "audit_refuse"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'DELETE' AND current_setting('muster.prunes_audit', true) = 'yes' THEN
		RETURN OLD;
	END IF;
	RAISE EXCEPTION 'audit entries are never changed, and only muster_prune_audit removes them' USING ERRCODE = 'restrict_violation';
END $$;--> statement-breakpoint
CREATE TRIGGER "audit_logs_rows" BEFORE UPDATE OR DELETE ON "audit_logs" FOR EACH ROW EXECUTE FUNCTION "audit_refuse"();--> statement-breakpoint
CREATE TRIGGER "audit_logs_table" BEFORE TRUNCATE ON "audit_logs" FOR EACH STATEMENT EXECUTE FUNCTION "audit_refuse"();--> statement-breakpoint
CREATE TRIGGER "audit_seals_rows" BEFORE UPDATE OR DELETE ON "audit_seals" FOR EACH ROW EXECUTE FUNCTION "audit_refuse"();--> statement-breakpoint
CREATE TRIGGER "audit_seals_table" BEFORE TRUNCATE ON "audit_seals" FOR EACH STATEMENT EXECUTE FUNCTION "audit_refuse"();--> statement-breakpoint
ALTER TABLE "audit_logs" ENABLE ALWAYS TRIGGER "audit_logs_rows";--> statement-breakpoint
ALTER TABLE "audit_logs" ENABLE ALWAYS TRIGGER "audit_logs_table";--> statement-breakpoint
ALTER TABLE "audit_seals" ENABLE ALWAYS TRIGGER "audit_seals_rows";--> statement-breakpoint
ALTER TABLE "audit_seals" ENABLE ALWAYS TRIGGER "audit_seals_table";--> statement-breakpoint
-- Removes the oldest entries of the chain, up to the entry `through`, and returns their number. An entry with the action audit.prune must name the
-- last removed entry and its hash, so that the chain stays verifiable from there. The function refuses entries that are younger than 30 days.
CREATE FUNCTION "muster_prune_audit"(through bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	removed bigint;
	head text;
BEGIN
	SELECT s.entry_sha256 INTO head FROM audit_seals s WHERE s.sequence = through;
	IF head IS NULL THEN
		RAISE EXCEPTION 'there is no sealed audit entry %', through USING ERRCODE = 'restrict_violation';
	END IF;
	IF EXISTS (SELECT FROM audit_seals s JOIN audit_logs a ON a.id = s.audit_id
		WHERE s.sequence <= through AND a.occurred_at > now() - interval '30 days') THEN
		RAISE EXCEPTION 'an audit entry up to % is younger than 30 days', through USING ERRCODE = 'restrict_violation';
	END IF;
	IF NOT EXISTS (SELECT FROM audit_logs a WHERE a.action = 'audit.prune'
		AND a.details ->> 'through_sequence' = through::text AND a.details ->> 'entry_sha256' = head) THEN
		RAISE EXCEPTION 'no entry audit.prune names the audit entry %', through USING ERRCODE = 'restrict_violation';
	END IF;
	PERFORM set_config('muster.prunes_audit', 'yes', true);
	DELETE FROM audit_logs a USING audit_seals s WHERE s.audit_id = a.id AND s.sequence <= through;
	GET DIAGNOSTICS removed = ROW_COUNT;
	DELETE FROM audit_seals s WHERE s.sequence <= through;
	PERFORM set_config('muster.prunes_audit', '', true);
	RETURN removed;
END $$;--> statement-breakpoint
-- The function must never read a table of the same name that its caller has made.
DO $$ BEGIN
	EXECUTE format('ALTER FUNCTION muster_prune_audit(bigint) SET search_path = %I, pg_temp', current_schema());
END $$;--> statement-breakpoint
REVOKE ALL ON FUNCTION "muster_prune_audit"(bigint) FROM PUBLIC;
