import { z } from "zod";
import { Overview } from "../../../shared/api/overview.ts";
import { OverviewHistory, OverviewHistoryQuery } from "../../../shared/api/overview-history.ts";
import { databaseNow } from "../../db/queries/clock.ts";
import { listCredentials } from "../../db/queries/credential-uses.ts";
import { toBreaker } from "../../db/queries/drift-reads.ts";
import { readFleetHistory } from "../../db/queries/fleet-samples.ts";
import {
  countDrift,
  countNodesByStatus,
  groupWaiting,
  listOpenBreakers,
  readEndingCertificates,
  readSlow,
} from "../../db/queries/overview.ts";
import type { Db } from "../../db/tx.ts";
import type { Actor } from "../../people/actor.ts";
import { warningOf } from "../../workflows/onboarding/credential-warnings.ts";
import { readRoute } from "../route.ts";

/** The most credentials in an overview; a site may have a BMC login for each of its hosts. */
const MOST_CREDENTIALS = 100;

/** Returns the credentials at the caller's sites about which the hub warns a person, because they fail or are unused. */
async function readCredentials(db: Db, { sites }: Actor): Promise<Pick<Overview, "credentials" | "more_credentials">> {
  const warned = (await listCredentials(db)).flatMap((secret) => {
    const warning = sites === null || sites.includes(secret.siteId) ? warningOf(secret) : null;
    if (warning === null) return [];
    const { kind: credential, overrideId: override_id, siteId: site_id } = secret;
    return [{ site_id, credential, override_id, ...warning, since: warning.since.toISOString() }];
  });
  const credentials = warned.slice(0, MOST_CREDENTIALS);
  return { credentials, more_credentials: warned.length - credentials.length };
}

const getOverview = readRoute({
  operationId: "getOverview",
  method: "GET",
  path: "/api/v1/admin/overview",
  tag: "operations",
  summary: "Show what an operator has to know first: nodes by status, what waits for a person, what is slow, drift",
  permission: "read",
  right: "read_fleet",
  place: "list",
  query: z.strictObject({}),
  status: 200,
  response: Overview,
  read: async ({ actor, deps: { db } }) => {
    const now = await databaseNow(db);
    return {
      ...(await countNodesByStatus(db, actor)),
      ...(await groupWaiting(db, actor)),
      slow: await readSlow(db, actor),
      drift: await countDrift(db, actor),
      breakers: (await listOpenBreakers(db, actor)).map((row) => toBreaker(row, now)),
      certificates: await readEndingCertificates(db, actor),
      ...(await readCredentials(db, actor)),
    };
  },
});

const getHistory = readRoute({
  operationId: "getOverviewHistory",
  method: "GET",
  path: "/api/v1/admin/overview/history",
  tag: "operations",
  summary:
    "Read how many nodes had which status in the past, how many were schedulable, and how many operations waited for a person",
  permission: "read",
  right: "read_fleet",
  place: "list",
  query: OverviewHistoryQuery,
  status: 200,
  response: OverviewHistory,
  read: ({ query: { hours, site_id: siteId }, actor, deps: { db } }) => readFleetHistory(db, actor, { hours, siteId }),
});

export const overviewRoutes = [getOverview, getHistory];
