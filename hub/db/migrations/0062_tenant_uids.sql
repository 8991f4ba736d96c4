CREATE TABLE "tenant_uids" (
	"machine" text PRIMARY KEY NOT NULL,
	"highest_uid" integer NOT NULL,
	"made_by" text DEFAULT '' NOT NULL
);
--> statement-breakpoint
-- Each earlier allocation took at most one uid. On a machine of several generations the present agent does not know the uids of the earlier ones.
INSERT INTO "tenant_uids" ("machine", "highest_uid", "made_by")
SELECT m."machine", least(59999, greatest(19999 + count(*), max(coalesce((t."result" ->> 'uid')::numeric, 0)))),
	CASE WHEN count(DISTINCT (a."node_id", a."generation")) = 1 THEN max(a."node_id"::text || '/' || a."generation") ELSE '' END
FROM "allocations" a
LEFT JOIN "tasks" t ON t."id" = a."grant_task_id" AND t."state" = 'succeeded' AND jsonb_typeof(t."result" -> 'uid') = 'number'
CROSS JOIN LATERAL (
	SELECT 'node:' || a."node_id" AS "machine"
	UNION ALL
	SELECT 'maas:' || s."maas_system_id" FROM "node_maas_state" s WHERE s."node_id" = a."node_id"
) m
GROUP BY m."machine";
