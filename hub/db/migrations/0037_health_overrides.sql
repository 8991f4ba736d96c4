CREATE TABLE "node_health_overrides" (
	"node_id" uuid NOT NULL,
	"source" text NOT NULL,
	"target" text,
	"reason" text NOT NULL,
	"set_by" text NOT NULL,
	"since" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "node_health_overrides_node_id_source_pk" PRIMARY KEY("node_id","source"),
	CONSTRAINT "node_health_overrides_source_check" CHECK ("source" ~ '^[a-z0-9][a-z0-9._-]{0,62}$')
);
