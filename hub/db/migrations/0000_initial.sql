CREATE TABLE "agent_sessions" (
	"node_id" uuid PRIMARY KEY NOT NULL,
	"session_epoch" bigint NOT NULL,
	"hub_id" uuid NOT NULL,
	"channel" text NOT NULL,
	"state" text NOT NULL,
	"boot_id" text NOT NULL,
	"agent_version" text NOT NULL,
	"protocol_version" integer NOT NULL,
	"generation" integer NOT NULL,
	"heartbeat_ttl_ms" integer NOT NULL,
	"remote_address" text,
	"close_reason" text,
	"connected_at" timestamp with time zone DEFAULT now() NOT NULL,
	"last_seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"closed_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "api_tokens" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"name" text NOT NULL,
	"role" text NOT NULL,
	"token_sha256" text NOT NULL,
	"revoked_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "api_tokens_name_unique" UNIQUE("name"),
	CONSTRAINT "api_tokens_token_sha256_unique" UNIQUE("token_sha256"),
	CONSTRAINT "api_tokens_role_check" CHECK ("role" in ('admin', 'viewer'))
);
--> statement-breakpoint
CREATE TABLE "audit_logs" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"actor" text NOT NULL,
	"role" text NOT NULL,
	"action" text NOT NULL,
	"target" text NOT NULL,
	"reason" text,
	"request_id" text,
	"details" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"occurred_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "domain_events" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"id" uuid DEFAULT gen_random_uuid() NOT NULL,
	"type" text NOT NULL,
	"subject" text NOT NULL,
	"data" jsonb NOT NULL,
	"occurred_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "domain_events_id_unique" UNIQUE("id")
);
--> statement-breakpoint
CREATE TABLE "enrollment_tokens" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"token_sha256" text NOT NULL,
	"node_id" uuid NOT NULL,
	"workflow_id" uuid,
	"generation" integer NOT NULL,
	"maas_system_id" text,
	"bound_macs" text[] DEFAULT '{}' NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"used_at" timestamp with time zone,
	"used_key_sha256" text,
	"revoked_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "enrollment_tokens_token_sha256_unique" UNIQUE("token_sha256")
);
--> statement-breakpoint
CREATE TABLE "idempotency_keys" (
	"actor" text NOT NULL,
	"key" text NOT NULL,
	"request_sha256" text NOT NULL,
	"status" integer NOT NULL,
	"body" jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "idempotency_keys_actor_key_pk" PRIMARY KEY("actor","key")
);
--> statement-breakpoint
CREATE TABLE "maas_machines" (
	"site_id" uuid NOT NULL,
	"system_id" text NOT NULL,
	"hostname" text NOT NULL,
	"status" integer NOT NULL,
	"status_name" text NOT NULL,
	"status_message" text NOT NULL,
	"error_description" text NOT NULL,
	"power_state" text NOT NULL,
	"owner" text,
	"locked" boolean NOT NULL,
	"ip_addresses" text[] NOT NULL,
	"enable_hw_sync" boolean,
	"last_sync" timestamp with time zone,
	"next_sync" timestamp with time zone,
	"sync_interval_seconds" integer,
	"absent" boolean DEFAULT false NOT NULL,
	"details" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"observed_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "maas_machines_site_id_system_id_pk" PRIMARY KEY("site_id","system_id")
);
--> statement-breakpoint
CREATE TABLE "maas_power_credential_overrides" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"site_id" uuid NOT NULL,
	"selector_type" text NOT NULL,
	"selector_value" text NOT NULL,
	"vault_path" text NOT NULL,
	"status" text DEFAULT 'active' NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "maas_power_credential_overrides_selector_key" UNIQUE("site_id","selector_type","selector_value"),
	CONSTRAINT "maas_power_credential_overrides_type_check" CHECK ("selector_type" in ('hostname', 'ipmi_ip', 'pxe_mac')),
	CONSTRAINT "maas_power_credential_overrides_status_check" CHECK ("status" in ('active', 'disabled'))
);
--> statement-breakpoint
CREATE TABLE "maas_roce_assignments" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"site_id" uuid NOT NULL,
	"hostname" text NOT NULL,
	"interface" text NOT NULL,
	"ipv4_cidr" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "maas_roce_assignments_interface_key" UNIQUE("site_id","hostname","interface"),
	CONSTRAINT "maas_roce_assignments_address_key" UNIQUE("site_id","ipv4_cidr")
);
--> statement-breakpoint
CREATE TABLE "maas_site_profiles" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"site_id" uuid NOT NULL,
	"name" text NOT NULL,
	"description" text,
	"distro_series" text NOT NULL,
	"architecture" text NOT NULL,
	"node_pxe_iface" text,
	"strict_pxe_preflight" boolean NOT NULL,
	"enable_phase2_roce" boolean NOT NULL,
	"require_hw_sync" boolean NOT NULL,
	"hardware_sync_interval_seconds" integer NOT NULL,
	"release_fallback_no_erase" boolean NOT NULL,
	"enable_deploy_retry_on_datasource_failure" boolean NOT NULL,
	"max_deploy_retry_attempts" integer NOT NULL,
	"auto_claim_single_new_machine" boolean NOT NULL,
	"batch_max_parallel" integer NOT NULL,
	"deploy_max_parallel" integer NOT NULL,
	"site_bootstrap_bundle_ref" text,
	"initialize_extra_disks" boolean NOT NULL,
	"erase_unexpected_signatures" boolean NOT NULL,
	"boot_disk_pattern" text NOT NULL,
	"enrollment_token_ttl_seconds" integer NOT NULL,
	"preflight_timeout_seconds" integer NOT NULL,
	"discovery_timeout_seconds" integer NOT NULL,
	"commission_timeout_seconds" integer NOT NULL,
	"configure_timeout_seconds" integer NOT NULL,
	"deploy_timeout_seconds" integer NOT NULL,
	"hardware_sync_seed_timeout_seconds" integer NOT NULL,
	"hardware_sync_health_timeout_seconds" integer NOT NULL,
	"agent_enrollment_timeout_seconds" integer NOT NULL,
	"status" text DEFAULT 'active' NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "maas_site_profiles_name_key" UNIQUE("site_id","name"),
	CONSTRAINT "maas_site_profiles_status_check" CHECK ("status" in ('active', 'disabled'))
);
--> statement-breakpoint
CREATE TABLE "maas_site_watches" (
	"site_id" uuid PRIMARY KEY NOT NULL,
	"lease_owner" uuid,
	"lease_until" timestamp with time zone,
	"fence" bigint DEFAULT 0 NOT NULL,
	"event_cursor" bigint,
	"last_poll_at" timestamp with time zone,
	"last_sweep_at" timestamp with time zone,
	"wake_requested_at" timestamp with time zone,
	"consecutive_failures" integer DEFAULT 0 NOT NULL,
	"last_error_code" text,
	"last_error_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "maas_sites" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"name" text NOT NULL,
	"region_code" text NOT NULL,
	"api_base_url" text NOT NULL,
	"api_token_vault_path" text,
	"default_power_creds_vault_path" text,
	"deploy_password_vault_path" text,
	"pxe_iface" text NOT NULL,
	"pxe_vlan_vid" integer NOT NULL,
	"node_pxe_iface" text NOT NULL,
	"deploy_user" text NOT NULL,
	"deploy_ssh_iface" text NOT NULL,
	"upstream_dns_servers" text[] NOT NULL,
	"default_profile_id" uuid,
	"status" text DEFAULT 'active' NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "maas_sites_name_unique" UNIQUE("name"),
	CONSTRAINT "maas_sites_status_check" CHECK ("status" in ('active', 'disabled'))
);
--> statement-breakpoint
CREATE TABLE "node_certificates" (
	"serial" text PRIMARY KEY NOT NULL,
	"node_id" uuid NOT NULL,
	"generation" integer NOT NULL,
	"public_key_sha256" text NOT NULL,
	"not_before" timestamp with time zone NOT NULL,
	"not_after" timestamp with time zone NOT NULL,
	"revoked_at" timestamp with time zone,
	"revoke_reason" text,
	"issued_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "node_conditions" (
	"node_id" uuid NOT NULL,
	"type" text NOT NULL,
	"status" text NOT NULL,
	"reason" text NOT NULL,
	"message" text NOT NULL,
	"generation" integer NOT NULL,
	"source" text NOT NULL,
	"observed_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone,
	CONSTRAINT "node_conditions_node_id_type_pk" PRIMARY KEY("node_id","type")
);
--> statement-breakpoint
CREATE TABLE "node_events" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"node_id" uuid NOT NULL,
	"type" text NOT NULL,
	"from_status" text,
	"to_status" text,
	"owner" text NOT NULL,
	"message" text NOT NULL,
	"details" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"occurred_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "node_inventories" (
	"node_id" uuid PRIMARY KEY NOT NULL,
	"inventory" jsonb NOT NULL,
	"reported_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "node_maas_state" (
	"node_id" uuid PRIMARY KEY NOT NULL,
	"site_id" uuid NOT NULL,
	"maas_system_id" text NOT NULL,
	"ipmi_ip" text NOT NULL,
	"last_maas_status" text,
	"last_maas_power_state" text,
	"last_maas_ips" text[],
	"last_reconciled_at" timestamp with time zone,
	"drift_detected" boolean DEFAULT false NOT NULL,
	"drift_details" jsonb,
	"drift_resolved_at" timestamp with time zone,
	CONSTRAINT "node_maas_state_machine_key" UNIQUE("site_id","maas_system_id")
);
--> statement-breakpoint
CREATE TABLE "node_onboardings" (
	"onboarding_id" uuid PRIMARY KEY NOT NULL,
	"batch_id" uuid,
	"node_id" uuid NOT NULL,
	"site_id" uuid NOT NULL,
	"profile_id" uuid NOT NULL,
	"sku_id" text NOT NULL,
	"hostname" text NOT NULL,
	"ipmi_ip" text NOT NULL,
	"pxe_mac" text,
	"maas_system_id" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "onboarding_batches" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"site_id" uuid NOT NULL,
	"requested_by" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "nodes" (
	"id" uuid PRIMARY KEY NOT NULL,
	"hostname" text NOT NULL,
	"site_id" uuid,
	"host" text,
	"port" integer DEFAULT 22 NOT NULL,
	"sku" text NOT NULL,
	"gpus_total" integer NOT NULL,
	"region_code" text NOT NULL,
	"status" text NOT NULL,
	"onboarding_mode" text NOT NULL,
	"access_method" text DEFAULT 'node_agent' NOT NULL,
	"ssh_username" text DEFAULT 'root' NOT NULL,
	"generation" integer DEFAULT 0 NOT NULL,
	"cordon_reason" text,
	"cordon_owner" text,
	"operation_id" uuid,
	"last_agent_contact_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "nodes_status_check" CHECK ("status" in ('bootstrap_issued', 'enrolling', 'active', 'offline', 'quarantined', 'draining', 'retired', 'removing', 'deleted')),
	CONSTRAINT "nodes_onboarding_mode_check" CHECK ("onboarding_mode" in ('maas', 'manual')),
	CONSTRAINT "nodes_operation_check" CHECK ("status" not in ('draining', 'removing') or "operation_id" is not null)
);
--> statement-breakpoint
CREATE TABLE "readiness_signals" (
	"id" uuid PRIMARY KEY NOT NULL,
	"node_id" uuid NOT NULL,
	"generation" integer NOT NULL,
	"source" text NOT NULL,
	"boot_id" text,
	"conditions" jsonb NOT NULL,
	"applied" boolean NOT NULL,
	"received_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "skus" (
	"id" text PRIMARY KEY NOT NULL,
	"description" text NOT NULL,
	"gpu_vendor" text NOT NULL,
	"gpu_model" text NOT NULL,
	"gpus_total" integer NOT NULL,
	"status" text DEFAULT 'active' NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "skus_gpu_vendor_check" CHECK ("gpu_vendor" in ('amd', 'nvidia', 'none')),
	CONSTRAINT "skus_status_check" CHECK ("status" in ('active', 'disabled'))
);
--> statement-breakpoint
CREATE TABLE "tasks" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"node_id" uuid NOT NULL,
	"workflow_id" uuid,
	"type" text NOT NULL,
	"input" jsonb NOT NULL,
	"state" text DEFAULT 'queued' NOT NULL,
	"idempotency_key" text NOT NULL,
	"epoch" integer DEFAULT 0 NOT NULL,
	"lease_until" timestamp with time zone,
	"attempts" integer DEFAULT 0 NOT NULL,
	"max_attempts" integer DEFAULT 5 NOT NULL,
	"not_before" timestamp with time zone DEFAULT now() NOT NULL,
	"deadline" timestamp with time zone NOT NULL,
	"progress" jsonb,
	"progress_seq" integer,
	"result" jsonb,
	"error_code" text,
	"error_message" text,
	"started_at" timestamp with time zone,
	"finished_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "tasks_idempotency_key" UNIQUE("node_id","idempotency_key"),
	CONSTRAINT "tasks_state_check" CHECK ("state" in ('queued', 'offered', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled', 'expired'))
);
--> statement-breakpoint
CREATE TABLE "workflow_events" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"workflow_id" uuid NOT NULL,
	"stage" text NOT NULL,
	"attempt" integer NOT NULL,
	"status" text NOT NULL,
	"message" text,
	"details" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"fence" integer NOT NULL,
	"occurred_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "workflow_events_status_check" CHECK ("status" in ('started', 'waiting', 'succeeded', 'skipped', 'retrying', 'failed', 'returned', 'compensated'))
);
--> statement-breakpoint
CREATE TABLE "workflow_subjects" (
	"subject" text PRIMARY KEY NOT NULL,
	"workflow_id" uuid NOT NULL
);
--> statement-breakpoint
CREATE TABLE "workflows" (
	"id" uuid PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"status" text NOT NULL,
	"site_id" uuid,
	"batch_id" uuid,
	"stage" text NOT NULL,
	"attempt" integer DEFAULT 1 NOT NULL,
	"stage_runs" integer DEFAULT 0 NOT NULL,
	"stage_entered_at" timestamp with time zone,
	"stage_deadline" timestamp with time zone,
	"wait_reason" text,
	"wait_on" text,
	"wake_at" timestamp with time zone,
	"priority" integer DEFAULT 0 NOT NULL,
	"lease_owner" uuid,
	"lease_until" timestamp with time zone,
	"fence" bigint DEFAULT 0 NOT NULL,
	"input" jsonb NOT NULL,
	"state" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"failure_class" text,
	"failure_code" text,
	"failure_message" text,
	"evidence" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"next_action" text,
	"compensation" jsonb,
	"cancel_requested_at" timestamp with time zone,
	"requested_by" text,
	"requested_at" timestamp with time zone DEFAULT now() NOT NULL,
	"started_at" timestamp with time zone,
	"completed_at" timestamp with time zone,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "workflows_status_check" CHECK ("status" in ('pending', 'running', 'completed', 'failed_retryable', 'failed_manual_intervention', 'cancelled', 'compensating', 'reconciled'))
);
--> statement-breakpoint
ALTER TABLE "maas_power_credential_overrides" ADD CONSTRAINT "maas_power_credential_overrides_site_id_maas_sites_id_fk" FOREIGN KEY ("site_id") REFERENCES "public"."maas_sites"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "maas_roce_assignments" ADD CONSTRAINT "maas_roce_assignments_site_id_maas_sites_id_fk" FOREIGN KEY ("site_id") REFERENCES "public"."maas_sites"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "maas_site_profiles" ADD CONSTRAINT "maas_site_profiles_site_id_maas_sites_id_fk" FOREIGN KEY ("site_id") REFERENCES "public"."maas_sites"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "node_maas_state" ADD CONSTRAINT "node_maas_state_node_id_nodes_id_fk" FOREIGN KEY ("node_id") REFERENCES "public"."nodes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "node_onboardings" ADD CONSTRAINT "node_onboardings_onboarding_id_workflows_id_fk" FOREIGN KEY ("onboarding_id") REFERENCES "public"."workflows"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "nodes" ADD CONSTRAINT "nodes_site_id_maas_sites_id_fk" FOREIGN KEY ("site_id") REFERENCES "public"."maas_sites"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "audit_logs_target_idx" ON "audit_logs" USING btree ("target","id");--> statement-breakpoint
CREATE INDEX "domain_events_subject_idx" ON "domain_events" USING btree ("subject","seq");--> statement-breakpoint
CREATE INDEX "enrollment_tokens_node_idx" ON "enrollment_tokens" USING btree ("node_id");--> statement-breakpoint
CREATE INDEX "node_certificates_node_idx" ON "node_certificates" USING btree ("node_id");--> statement-breakpoint
CREATE INDEX "node_events_node_idx" ON "node_events" USING btree ("node_id","id");--> statement-breakpoint
CREATE INDEX "node_onboardings_batch_idx" ON "node_onboardings" USING btree ("batch_id");--> statement-breakpoint
CREATE INDEX "node_onboardings_machine_idx" ON "node_onboardings" USING btree ("site_id","maas_system_id");--> statement-breakpoint
CREATE INDEX "node_onboardings_node_idx" ON "node_onboardings" USING btree ("node_id");--> statement-breakpoint
CREATE UNIQUE INDEX "nodes_live_hostname_key" ON "nodes" USING btree ("site_id","hostname") WHERE "status" <> 'deleted';--> statement-breakpoint
CREATE INDEX "nodes_status_idx" ON "nodes" USING btree ("status");--> statement-breakpoint
CREATE INDEX "readiness_signals_node_idx" ON "readiness_signals" USING btree ("node_id","received_at");--> statement-breakpoint
CREATE INDEX "tasks_open_idx" ON "tasks" USING btree ("node_id","created_at") WHERE "state" in ('queued', 'offered', 'running', 'cancelling');--> statement-breakpoint
CREATE INDEX "workflow_events_workflow_idx" ON "workflow_events" USING btree ("workflow_id","id");--> statement-breakpoint
CREATE INDEX "workflows_due_idx" ON "workflows" USING btree ("priority","wake_at") WHERE "status" in ('pending', 'running', 'compensating') and "wake_at" is not null;--> statement-breakpoint
CREATE INDEX "workflows_wait_on_idx" ON "workflows" USING btree ("wait_on") WHERE "wait_on" is not null;--> statement-breakpoint
CREATE INDEX "workflows_batch_idx" ON "workflows" USING btree ("batch_id");--> statement-breakpoint
CREATE INDEX "workflows_site_idx" ON "workflows" USING btree ("site_id","status");