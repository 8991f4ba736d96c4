CREATE TABLE "connection_attempts" (
	"address" text NOT NULL,
	"kind" text NOT NULL,
	"node_id" uuid,
	"detail" text NOT NULL,
	"count" integer NOT NULL,
	"first_at" timestamp with time zone NOT NULL,
	"last_at" timestamp with time zone NOT NULL,
	CONSTRAINT "connection_attempts_of_one" UNIQUE NULLS NOT DISTINCT("address","kind","node_id")
);
--> statement-breakpoint
CREATE INDEX "connection_attempts_last_idx" ON "connection_attempts" USING btree ("last_at");--> statement-breakpoint
CREATE INDEX "connection_attempts_node_idx" ON "connection_attempts" USING btree ("node_id");