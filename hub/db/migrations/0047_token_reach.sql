ALTER TABLE "api_tokens" DROP CONSTRAINT "api_tokens_role_check";--> statement-breakpoint
ALTER TABLE "api_tokens" ADD COLUMN "sites" uuid[];--> statement-breakpoint
ALTER TABLE "api_tokens" ADD COLUMN "tenant" text;--> statement-breakpoint
ALTER TABLE "api_tokens" ADD CONSTRAINT "api_tokens_tenant_check" CHECK (("role" in ('tenant', 'repair')) = ("tenant" is not null));--> statement-breakpoint
ALTER TABLE "api_tokens" ADD CONSTRAINT "api_tokens_role_check" CHECK ("role" in ('viewer', 'operator', 'admin', 'provisioner', 'tenant', 'repair'));