import { agentConnections, agentDisconnections, agentHandshakes, agentRefusals } from "./counted/agents.ts";
import { apiRequests, loginsRefused } from "./counted/api-requests.ts";
import { budgetsExceeded } from "./counted/budgets.ts";
import { collectErrors } from "./counted/collection.ts";
import type { Family } from "./counted/family.ts";
import { maasRequestSeconds, maasRequests } from "./counted/maas-requests.ts";
import { nodeMoves } from "./counted/node-moves.ts";
import { probeDelaySeconds, probesMade } from "./counted/probes.ts";
import { sitePolls } from "./counted/site-polls.ts";
import { taskDeliveriesEnded } from "./counted/tasks-ended.ts";
import { webhookAttempts } from "./counted/webhooks.ts";
import {
  stageSeconds,
  workflowClaimSeconds,
  workflowClaims,
  workflowFailures,
  workflowLeasesLost,
  workflowMoves,
  workflowsEnded,
} from "./counted/workflow-runs.ts";
import { agentGauges } from "./gauges/agents.ts";
import { allocationGauges } from "./gauges/allocations.ts";
import { batchGauges } from "./gauges/batches.ts";
import { breakerGauges } from "./gauges/breakers.ts";
import { credentialGauges } from "./gauges/credentials.ts";
import { driftGauges } from "./gauges/drift.ts";
import { eventGauges } from "./gauges/events.ts";
import type { GaugeGroup } from "./gauges/group.ts";
import { nodeGauges } from "./gauges/nodes.ts";
import { peopleGauges } from "./gauges/people.ts";
import { PROCESS_GAUGES } from "./gauges/process.ts";
import { siteGauges } from "./gauges/sites.ts";
import { taskGauges } from "./gauges/tasks.ts";
import { unprovenNodeGauges } from "./gauges/unproven-nodes.ts";
import { workflowGauges } from "./gauges/workflows.ts";

/** The metrics in which each hub counts its own work. */
export const COUNTED: readonly Family[] = [
  workflowClaims,
  workflowClaimSeconds,
  workflowMoves,
  workflowLeasesLost,
  stageSeconds,
  workflowFailures,
  workflowsEnded,
  nodeMoves,
  taskDeliveriesEnded,
  agentConnections,
  agentDisconnections,
  agentHandshakes,
  agentRefusals,
  maasRequests,
  maasRequestSeconds,
  sitePolls,
  probesMade,
  probeDelaySeconds,
  webhookAttempts,
  budgetsExceeded,
  apiRequests,
  loginsRefused,
  collectErrors,
];

/** The groups of gauges that a hub reads from the database, with one SQL statement for each group. */
export const GAUGE_GROUPS: readonly GaugeGroup[] = [
  nodeGauges,
  unprovenNodeGauges,
  workflowGauges,
  taskGauges,
  agentGauges,
  siteGauges,
  driftGauges,
  breakerGauges,
  credentialGauges,
  eventGauges,
  allocationGauges,
  batchGauges,
  peopleGauges,
];

/** All metrics of Muster. prom-client adds its own metrics of the process and of Node.js. */
export const FAMILIES: readonly Family[] = [
  ...COUNTED,
  ...PROCESS_GAUGES,
  ...GAUGE_GROUPS.flatMap(({ families }) => families),
];
