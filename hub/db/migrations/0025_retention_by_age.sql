CREATE INDEX "audit_logs_age_idx" ON "audit_logs" USING btree ("occurred_at");--> statement-breakpoint
CREATE INDEX "enrollment_tokens_age_idx" ON "enrollment_tokens" USING btree (greatest(expires_at, used_at, revoked_at));--> statement-breakpoint
CREATE INDEX "idempotency_keys_age_idx" ON "idempotency_keys" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "node_certificates_age_idx" ON "node_certificates" USING btree ("not_after");--> statement-breakpoint
CREATE INDEX "node_events_age_idx" ON "node_events" USING btree ("type","occurred_at");--> statement-breakpoint
CREATE INDEX "readiness_signals_age_idx" ON "readiness_signals" USING btree ("received_at");--> statement-breakpoint
CREATE INDEX "tasks_age_idx" ON "tasks" USING btree ("finished_at") WHERE finished_at is not null;--> statement-breakpoint
CREATE INDEX "workflow_events_age_idx" ON "workflow_events" USING btree ("occurred_at");--> statement-breakpoint
CREATE INDEX "workflows_age_idx" ON "workflows" USING btree ("completed_at") WHERE completed_at is not null;