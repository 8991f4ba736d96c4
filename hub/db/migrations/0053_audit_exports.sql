CREATE TABLE "audit_exports" (
	"destination" text PRIMARY KEY NOT NULL,
	"sequence" bigint DEFAULT 0 NOT NULL,
	"lease_owner" uuid NOT NULL,
	"lease_until" timestamp with time zone NOT NULL
);
