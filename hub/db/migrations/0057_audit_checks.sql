CREATE TABLE "audit_checks" (
	"id" integer PRIMARY KEY DEFAULT 1 NOT NULL,
	"part" bigint DEFAULT 1 NOT NULL,
	"part_began_at" timestamp with time zone DEFAULT now() NOT NULL,
	"began_at" timestamp with time zone DEFAULT now() NOT NULL,
	"position" bigint DEFAULT 0 NOT NULL,
	"at_end" boolean DEFAULT false NOT NULL,
	"faults" integer DEFAULT 0 NOT NULL,
	"faults_before" integer DEFAULT 0 NOT NULL,
	"verified_through" bigint DEFAULT 0 NOT NULL,
	"checked_at" timestamp with time zone,
	CONSTRAINT "audit_checks_one_row" CHECK ("id" = 1)
);
