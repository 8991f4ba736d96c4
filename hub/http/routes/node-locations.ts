import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { LocationsSet, LocationsWritten } from "../../../shared/api/locations.ts";
import { NodePatch, NodeSummary } from "../../../shared/api/nodes.ts";
import { NodeId } from "../../../shared/ids.ts";
import { readSite } from "../../db/queries/maas-sites.ts";
import type { NodeRow } from "../../db/queries/node-reads.ts";
import { lockNode } from "../../db/queries/nodes.ts";
import { locate, locateByHostname } from "../../node/locate.ts";
import { Versioned, writeRoute } from "../route.ts";
import { mustFindNode, toSummary, versionOf } from "./nodes.ts";
import { changedMeanwhile, mustMatch, unknownSite } from "./rows.ts";

/** What an audit entry says about the place of a host and about its asset tag. */
const placeOf = ({ room, rack, unit, assetTag }: NodeRow["node"]) => ({ room, rack, unit, asset_tag: assetTag });

const updateNode = writeRoute({
  operationId: "updateNode",
  method: "PATCH",
  path: "/api/v1/admin/nodes/{id}",
  tag: "nodes",
  summary: "Change a node's location or asset tag; the ETag is a version of these two only",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  params: z.strictObject({ id: NodeId }),
  body: NodePatch,
  status: 200,
  response: NodeSummary,
  write: async ({ params, body, ifMatch, actor }, tx) => {
    const expected = mustMatch(ifMatch);
    const node = await lockNode(tx, params.id);
    if (node === null) throw new ApiError("not_found", `There is no node ${params.id}.`);
    if (versionOf(node) !== expected) throw changedMeanwhile("node");
    const { location, asset_tag: assetTag } = body;
    await locate(tx, node, { ...location, ...(assetTag === undefined ? {} : { assetTag }) }, actor.name);
    const now = await mustFindNode(tx, node.id);
    return {
      body: new Versioned(toSummary(now), versionOf(now.node)),
      audit: { target: `nodes/${node.id}`, details: { prior: placeOf(node), expected: placeOf(now.node) } },
    };
  },
});

const setNodeLocations = writeRoute({
  operationId: "setNodeLocations",
  method: "POST",
  path: "/api/v1/admin/nodes/locations",
  tag: "nodes",
  summary: "Set the locations and asset tags of many hosts of a site by their hostnames, and tell what became of each",
  permission: "write",
  right: "operate_nodes",
  place: { of: "site", body: "site_id" },
  body: LocationsSet,
  status: 200,
  response: LocationsWritten,
  write: async ({ body, actor }, tx) => {
    const site = await readSite(tx, body.site_id);
    if (site === null) throw unknownSite(body.site_id);
    const found = await locateByHostname(tx, site.id, body.items, actor.name);
    const idOf = new Map(found.map(({ id, hostname }) => [hostname, id]));
    const results = body.items.map(({ hostname }) => ({
      hostname,
      node_id: idOf.get(hostname) ?? null,
      refused_because: idOf.has(hostname) ? null : `Site ${site.name} has no node ${hostname}.`,
    }));
    const refused = body.items.length - found.length;
    return {
      body: { set: found.length, refused, results },
      audit: { target: `maas-sites/${site.id}`, details: { items: body.items, refused } },
    };
  },
});

export const nodeLocationRoutes = [updateNode, setNodeLocations];
