CREATE TABLE "database_restores" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"backup_taken_at" timestamp with time zone NOT NULL,
	"restored_at" timestamp with time zone DEFAULT now() NOT NULL
);
