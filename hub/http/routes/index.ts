import type { Route } from "../route.ts";
import { adoptionRoutes } from "./adoptions.ts";
import { allocationRoutes } from "./allocations.ts";
import { approvalRoutes } from "./approvals.ts";
import { auditLogRoutes } from "./audit-logs.ts";
import { authorityRoutes } from "./authority.ts";
import { batchRoutes } from "./batches.ts";
import { decommissionBatchRoutes } from "./decommission-batches.ts";
import { decommissionRoutes } from "./decommissions.ts";
import { diagnosticsRoutes } from "./diagnostics.ts";
import { eventRoutes } from "./events.ts";
import { externalAttemptRoutes } from "./external-attempts.ts";
import { healthRoutes } from "./health.ts";
import { healthOverrideRoutes } from "./health-overrides.ts";
import { instanceRoutes } from "./instances.ts";
import { maasSiteRoutes } from "./maas-sites.ts";
import { manualNodeRoutes } from "./manual-nodes.ts";
import { nodeBaselineRoutes } from "./node-baselines.ts";
import { nodeBulkRoutes } from "./node-bulk.ts";
import { nodeLifecycleRoutes } from "./node-lifecycle.ts";
import { nodeLocationRoutes } from "./node-locations.ts";
import { nodeMachineRoutes } from "./node-machines.ts";
import { nodeOperationRoutes } from "./node-operations.ts";
import { nodeRoutes } from "./nodes.ts";
import { onboardingRoutes } from "./onboardings.ts";
import { operationRoutes } from "./operations.ts";
import { overviewRoutes } from "./overview.ts";
import { powerRoutes } from "./power.ts";
import { powerOverrideRoutes } from "./power-overrides.ts";
import { profileRoutes } from "./profiles.ts";
import { readinessRoutes } from "./readiness.ts";
import { reconciliationRoutes } from "./reconciliation.ts";
import { repairRoutes } from "./repairs.ts";
import { roceAssignmentRoutes } from "./roce-assignments.ts";
import { sanitizationRecordRoutes } from "./sanitization-records.ts";
import { sanitizationValidationRoutes } from "./sanitization-validations.ts";
import { sessionRoutes } from "./sessions.ts";
import { signalSenderRoutes } from "./signal-senders.ts";
import { signalRoutes } from "./signals.ts";
import { siteCredentialRoutes } from "./site-credentials.ts";
import { siteMoveRoutes } from "./site-move.ts";
import { skuRoutes } from "./skus.ts";
import { sshKeyGroupRoutes } from "./ssh-key-groups.ts";
import { sshKeyRoutes } from "./ssh-keys.ts";
import { taskRoutes } from "./tasks.ts";
import { tokenRoutes } from "./tokens.ts";
import { webhookDeliveryRoutes } from "./webhook-deliveries.ts";
import { webhookRoutes } from "./webhooks.ts";

export const ROUTES: readonly Route[] = [
  ...maasSiteRoutes,
  ...siteCredentialRoutes,
  ...siteMoveRoutes,
  ...profileRoutes,
  ...skuRoutes,
  ...roceAssignmentRoutes,
  ...powerOverrideRoutes,
  ...onboardingRoutes,
  ...batchRoutes,
  ...decommissionBatchRoutes,
  ...decommissionRoutes,
  ...overviewRoutes,
  ...operationRoutes,
  ...externalAttemptRoutes,
  ...allocationRoutes,
  ...instanceRoutes,
  ...powerRoutes,
  ...sshKeyRoutes,
  ...sshKeyGroupRoutes,
  ...sanitizationRecordRoutes,
  ...sanitizationValidationRoutes,
  ...nodeRoutes,
  ...taskRoutes,
  ...manualNodeRoutes,
  ...nodeLocationRoutes,
  ...adoptionRoutes,
  ...nodeBulkRoutes,
  ...nodeMachineRoutes,
  ...nodeOperationRoutes,
  ...healthOverrideRoutes,
  ...nodeBaselineRoutes,
  ...nodeLifecycleRoutes,
  ...auditLogRoutes,
  ...authorityRoutes,
  ...readinessRoutes,
  ...signalRoutes,
  ...signalSenderRoutes,
  ...reconciliationRoutes,
  ...repairRoutes,
  ...eventRoutes,
  ...webhookRoutes,
  ...webhookDeliveryRoutes,
  ...tokenRoutes,
  ...approvalRoutes,
  ...healthRoutes,
  ...sessionRoutes,
  ...diagnosticsRoutes,
];
