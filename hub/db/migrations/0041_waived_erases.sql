-- A health override for each machine whose newest erase a person waived before health overrides existed (decision M9).
WITH waived AS (
	SELECT DISTINCT ON (d.site_id, d.maas_system_id) d.decommission_id, d.node_id, d.site_id, d.maas_system_id, d.mode,
		coalesce(w.state ->> 'erase_waived_by', 'unknown') AS waived_by
	FROM node_decommissions d JOIN workflows w ON w.id = d.decommission_id
	WHERE jsonb_typeof(w.state -> 'erase_waived') = 'number'
		AND (w.state -> 'erase_reported' IS NULL OR jsonb_typeof(w.state -> 'erase_reported') <> 'number'
			OR (w.state ->> 'erase_reported')::numeric < (w.state ->> 'erase_waived')::numeric)
		-- A later erase with evidence lifts the bar if it is at least as strong.
		AND NOT EXISTS (
			SELECT FROM node_decommissions l JOIN workflows v ON v.id = l.decommission_id
			WHERE l.site_id = d.site_id AND l.maas_system_id = d.maas_system_id AND l.created_at > d.created_at
				AND jsonb_typeof(v.state -> 'erase_reported') = 'number'
				AND (v.input ->> 'erase' = 'secure' OR w.input ->> 'erase' = 'quick'))
		-- A hub that knows health overrides has set this one, and a person may have removed it.
		AND NOT EXISTS (
			SELECT FROM node_events e
			WHERE e.node_id = d.node_id AND e.type = 'health_override_set' AND position(d.decommission_id::text IN e.message) > 0)
	ORDER BY d.site_id, d.maas_system_id, d.created_at DESC
), barred AS (
	-- The bar belongs to the node that has the machine now. If no node has it, the deleted node keeps the bar for the next node of the machine.
	INSERT INTO node_health_overrides (node_id, source, target, reason, set_by)
	SELECT coalesce(
			(SELECT m.node_id FROM node_maas_state m JOIN nodes n ON n.id = m.node_id
				WHERE m.site_id = o.site_id AND m.maas_system_id = o.maas_system_id AND n.status <> 'deleted' LIMIT 1),
			o.node_id),
		'disk-erase', o.maas_system_id,
		'MAAS did not show that the disks were erased in ' || o.mode || ' ' || o.decommission_id || ', and a person forced it',
		'operator:' || o.waived_by
	FROM waived o
	ON CONFLICT (node_id, source) DO NOTHING
	RETURNING node_id, source, target, reason, set_by
)
INSERT INTO node_events (node_id, type, owner, message, details)
SELECT node_id, 'health_override_set', set_by, source || ': ' || reason, jsonb_build_object('target', target) FROM barred;
