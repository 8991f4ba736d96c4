CREATE TABLE "page_sessions" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"id_sha256" text NOT NULL,
	"token_id" uuid,
	"subject" text,
	"name" text NOT NULL,
	"claims" jsonb,
	"refresh_sealed" text,
	"claims_at" timestamp with time zone DEFAULT now() NOT NULL,
	"refresh_tried_at" timestamp with time zone DEFAULT now() NOT NULL,
	"state_sha256" text,
	"address" text NOT NULL,
	"user_agent" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"last_used_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone,
	CONSTRAINT "page_sessions_id_sha256_unique" UNIQUE("id_sha256"),
	CONSTRAINT "page_sessions_state_sha256_unique" UNIQUE("state_sha256"),
	CONSTRAINT "page_sessions_owner_check" CHECK (("token_id" is null) <> ("subject" is null))
);
--> statement-breakpoint
ALTER TABLE "page_sessions" ADD CONSTRAINT "page_sessions_token_id_api_tokens_id_fk" FOREIGN KEY ("token_id") REFERENCES "public"."api_tokens"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "page_sessions_token_idx" ON "page_sessions" USING btree ("token_id");--> statement-breakpoint
CREATE INDEX "page_sessions_subject_idx" ON "page_sessions" USING btree ("subject");--> statement-breakpoint
CREATE INDEX "page_sessions_age_idx" ON "page_sessions" USING btree ("expires_at");