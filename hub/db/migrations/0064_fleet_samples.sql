CREATE TABLE "fleet_samples" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"sampled_at" timestamp with time zone NOT NULL,
	"site_id" uuid,
	"nodes" jsonb NOT NULL,
	"schedulable" integer NOT NULL,
	"waiting" integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX "fleet_samples_time_idx" ON "fleet_samples" USING btree ("sampled_at");