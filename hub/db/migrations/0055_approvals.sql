CREATE TABLE "approvals" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"operation" text NOT NULL,
	"needed_right" text NOT NULL,
	"site_id" uuid NOT NULL,
	"params" jsonb NOT NULL,
	"body" jsonb NOT NULL,
	"request_sha256" text NOT NULL,
	"does" text NOT NULL,
	"because" jsonb NOT NULL,
	"state" text DEFAULT 'pending' NOT NULL,
	"requested_by" text NOT NULL,
	"requester" text NOT NULL,
	"requester_ids" text[] NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"decided_by" text,
	"approver" text,
	"decided_at" timestamp with time zone,
	"decision_reason" text,
	"used_at" timestamp with time zone,
	CONSTRAINT "approvals_state_check" CHECK ("state" in ('pending', 'approved', 'refused', 'used', 'expired', 'withdrawn'))
);
--> statement-breakpoint
ALTER TABLE "api_tokens" ADD COLUMN "known_to" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD COLUMN "second_person" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "approvals" ADD CONSTRAINT "approvals_site_id_maas_sites_id_fk" FOREIGN KEY ("site_id") REFERENCES "public"."maas_sites"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "approvals_open_key" ON "approvals" USING btree ("requester","request_sha256") WHERE "state" in ('pending', 'approved');--> statement-breakpoint
CREATE INDEX "approvals_age_idx" ON "approvals" USING btree ("expires_at");--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD CONSTRAINT "maas_site_profiles_second_person_check" CHECK ("second_person" <@ '{erase,full_decommission,scripts}'::text[]);--> statement-breakpoint
-- A token of an older version counts as the token at the begin of its chain of creators. If that begin is a person, or if somebody has rotated the token,
-- nobody knows who has seen its secret.
WITH RECURSIVE origin AS (
	SELECT id, id AS root, created_by FROM api_tokens
	UNION
	SELECT o.id, c.id, c.created_by FROM origin o JOIN api_tokens c ON c.name = o.created_by
)
UPDATE api_tokens t
SET known_to = ARRAY[CASE WHEN o.created_by IS NULL AND t.previous_sha256 IS NULL THEN 'token:' || o.root::text ELSE 'anybody' END]
FROM origin o
WHERE o.id = t.id
	AND (t.created_by IS NOT NULL OR t.previous_sha256 IS NOT NULL)
	AND NOT EXISTS (SELECT 1 FROM api_tokens c WHERE c.name = o.created_by);
