import { z } from "zod";
import { DriftRule, DriftSeverity } from "../drift.ts";
import { NEXT_VERBS } from "../failure-rule.ts";
import { NodeId, SiteId, WorkflowId } from "../ids.ts";
import { NodeStatus } from "../node-status.ts";
import { OperationKind, OperationSummary } from "./operations.ts";
import { Breaker } from "./reconciliation.ts";
import { CredentialWarning } from "./sites.ts";
import { Timestamp } from "./values.ts";

const NamedOperation = z.strictObject({ operation_id: WorkflowId, kind: OperationKind, hostname: z.string() });

/** What an operator of the fleet has to know first: how many nodes are in which status, and what waits for a person. */
export const Overview = z.strictObject({
  /** The nodes that are not deleted, counted by site, SKU and status. */
  nodes: z.array(
    z.strictObject({
      site_id: SiteId.nullable(),
      sku_id: z.string(),
      status: NodeStatus,
      count: z.int(),
      /** The number of nodes in the group that can now take a tenant to whom the allocation gives no root rights. */
      schedulable: z.int(),
    }),
  ),
  /** The number of further groups of nodes, which the answer leaves out. */
  more_nodes: z.int(),
  /** Failed operations, which wait for a person, in groups with the same failure and the same next action; the largest group is first. */
  waiting: z.array(
    z.strictObject({
      failure_class: z.string(),
      error_code: z.string(),
      next_action: z.string().nullable(),
      next_verb: z.enum(NEXT_VERBS).nullable(),
      count: z.int(),
      oldest_at: Timestamp,
      examples: z.array(NamedOperation),
    }),
  ),
  /** The number of further groups of failed operations that the overview leaves out. */
  more_waiting: z.int(),
  /**
   * Operations whose stage has used more than 80 % of the time until its deadline. Among the operations that are near their stage's deadline, the one
   * with the nearest deadline is first.
   */
  slow: z.strictObject({ count: z.int(), operations: z.array(OperationSummary) }),
  /** Drift that no person has acknowledged yet. */
  drift: z.array(z.strictObject({ rule: DriftRule, severity: DriftSeverity, count: z.int() })),
  /** The open breakers, each of which holds back changes of the nodes of a site. */
  breakers: z.array(Breaker),
  /** Nodes in service whose agents did not renew their certificates in time: the certificate ends within four hours, or has ended. */
  certificates: z.strictObject({
    ending: z.int(),
    ended: z.int(),
    examples: z.array(z.strictObject({ node_id: NodeId, hostname: z.string(), not_after: Timestamp })),
  }),
  /** MAAS tokens and BMC logins that do not work, or that nothing has used for 30 days. */
  credentials: z.array(z.strictObject({ site_id: SiteId, ...CredentialWarning.shape })),
  /** The number of further credentials that need a person, which the answer leaves out. */
  more_credentials: z.int(),
});
export type Overview = z.output<typeof Overview>;
