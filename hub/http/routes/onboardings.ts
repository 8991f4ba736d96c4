import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import {
  BatchCreate,
  BatchCreated,
  Onboarding,
  OnboardingCreate,
  OnboardingCreated,
  OnboardingDetail,
  OnboardingId,
  page,
} from "../../../shared/api/onboardings.ts";
import { Hostname } from "../../../shared/api/values.ts";
import { BatchId, NodeId, SiteId, type WorkflowId } from "../../../shared/ids.ts";
import { StatusFilter } from "../../../shared/workflow-status.ts";
import { listOnboardings, readOnboarding } from "../../db/queries/onboardings.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { applyVerb } from "../../workflows/engine/apply-verb.ts";
import { VERBS, type Verb } from "../../workflows/engine/recovery.ts";
import { startOnboarding, startOnboardingBatch } from "../../workflows/onboarding/start-onboarding.ts";
import { pageOf, pageQuery, readBefore } from "../page.ts";
import { readRoute, sourceOf, writeRoute } from "../route.ts";
import { VERB_SUMMARIES } from "../verb-summaries.ts";
import { onboardingNeeds, restartNeeds } from "./second-person.ts";

const OnboardingParams = z.strictObject({ id: OnboardingId });
const tag = "onboardings";
const path = "/api/v1/admin/onboardings";

async function mustFindOnboarding(db: Db | Tx, id: WorkflowId): Promise<OnboardingDetail> {
  const found = await readOnboarding(db, id);
  if (found === null) throw new ApiError("not_found", `There is no onboarding ${id}.`);
  return found;
}

const createOnboarding = writeRoute({
  operationId: "createOnboarding",
  method: "POST",
  path,
  tag,
  summary: "Onboard one host, known by the address of its BMC",
  permission: "write",
  right: "operate_nodes",
  place: { of: "site", body: "site_id" },
  body: OnboardingCreate,
  status: 202,
  response: OnboardingCreated,
  secondPerson: ({ body }, tx) => onboardingNeeds(tx, { ...body, hosts: [body] }),
  write: async ({ body, actor }, tx) => {
    const created = await startOnboarding(tx, { request: body, requestedBy: actor.name });
    return { body: created, audit: { target: `onboardings/${created.onboarding_id}`, details: body } };
  },
});

const createOnboardingBatch = writeRoute({
  operationId: "createOnboardingBatch",
  method: "POST",
  path: `${path}/batch`,
  tag,
  summary: "Onboard many hosts; all are accepted or none",
  permission: "write",
  right: "operate_nodes",
  place: { of: "site", body: "site_id" },
  body: BatchCreate,
  status: 202,
  response: BatchCreated,
  secondPerson: ({ body }, tx) => onboardingNeeds(tx, { ...body, hosts: body.nodes }),
  write: async ({ body, actor }, tx) => {
    const created = await startOnboardingBatch(tx, { request: body, requestedBy: actor.name });
    return {
      body: created,
      audit: {
        target: `onboarding-batches/${created.batch_id}`,
        details: {
          hosts: body.nodes.length,
          site_id: body.site_id,
          profile_id: body.profile_id,
          stop_after_failures: body.stop_after_failures ?? null,
        },
      },
    };
  },
});

const listAllOnboardings = readRoute({
  operationId: "listOnboardings",
  method: "GET",
  path,
  tag,
  summary: "List onboardings, newest first",
  permission: "read",
  right: "read_fleet",
  place: "list",
  query: z.strictObject({
    ...pageQuery,
    batch_id: BatchId.optional(),
    site_id: SiteId.optional(),
    node_id: NodeId.optional(),
    status: StatusFilter.optional(),
    hostname: Hostname.optional(),
  }),
  status: 200,
  response: page(Onboarding),
  read: async ({ query, actor, deps }) => {
    const rows = await listOnboardings(
      deps.db,
      {
        batchId: query.batch_id,
        siteId: query.site_id,
        nodeId: query.node_id,
        status: query.status,
        hostname: query.hostname,
        reach: actor,
      },
      { before: readBefore(query.cursor), limit: query.limit + 1 },
    );
    return pageOf(
      rows,
      query.limit,
      ({ onboarding, at }) => [at, onboarding.onboarding_id],
      ({ onboarding }) => onboarding,
    );
  },
});

const getOnboarding = readRoute({
  operationId: "getOnboarding",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read an onboarding with its stage events",
  permission: "read",
  right: "read_fleet",
  place: { of: "onboarding", param: "id" },
  params: OnboardingParams,
  status: 200,
  response: OnboardingDetail,
  read: ({ params, deps }) => mustFindOnboarding(deps.db, params.id),
});

interface VerbCall {
  readonly params: z.output<typeof OnboardingParams>;
  readonly body: { readonly reason: string };
}
const restartAsks = ({ params, body }: VerbCall, tx: Tx) => restartNeeds(tx, params.id, body.reason);

/**
 * The API has one route for each verb of an onboarding (lifecycle 4.9, 4.15). The answer to an operator's verb contains the resulting onboarding, and
 * a client may repeat the request for the verb (decision W1).
 */
const verbRoute = (verb: Verb) =>
  writeRoute({
    operationId: `${verb.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())}Onboarding`,
    method: "POST",
    path: `${path}/{id}/${verb.replaceAll("_", "-")}`,
    tag,
    summary: VERB_SUMMARIES[verb],
    permission: "write",
    right: "operate_nodes",
    place: { of: "onboarding", param: "id" },
    params: OnboardingParams,
    body: z.strictObject({ reason: z.string().min(1).max(512) }),
    status: 200,
    response: OnboardingDetail,
    ...(verb === "restart_clean" ? { secondPerson: restartAsks } : {}),
    write: async (call, tx) => {
      const { params, body, deps } = call;
      await mustFindOnboarding(tx, params.id);
      await applyVerb(tx, deps.workflows, {
        workflowId: params.id,
        verb,
        ...sourceOf(call),
        reason: body.reason,
      });
      return {
        body: await mustFindOnboarding(tx, params.id),
        audit: { target: `onboardings/${params.id}`, reason: body.reason },
      };
    },
  });

export const onboardingRoutes = [
  createOnboarding,
  createOnboardingBatch,
  listAllOnboardings,
  getOnboarding,

  ...VERBS.map(verbRoute),
];
