CREATE TABLE "node_baselines" (
	"node_id" uuid NOT NULL,
	"generation" integer NOT NULL,
	"task_id" uuid NOT NULL,
	"requested_at" timestamp with time zone DEFAULT now() NOT NULL,
	"requested_by" text NOT NULL,
	"reason" text NOT NULL,
	"snapshot" jsonb,
	"taken_at" timestamp with time zone,
	"boot_id" text,
	"agent_version" text,
	"taken_task_id" uuid,
	"problem" text,
	CONSTRAINT "node_baselines_node_id_generation_pk" PRIMARY KEY("node_id","generation")
);
