import { ALLOCATIONS } from "./allocations.ts";
import { APPROVALS } from "./approvals.ts";
import { AUDIT } from "./audit.ts";
import { BATCHES } from "./batches.ts";
import { BREAKERS } from "./breakers.ts";
import { DECOMMISSIONS } from "./decommissions.ts";
import { DELIVERIES } from "./deliveries.ts";
import { DRIFT } from "./drift.ts";
import { EVENTS } from "./events.ts";
import { EXTERNAL_ATTEMPTS } from "./external-attempts.ts";
import { INSTANCES } from "./instances.ts";
import { NODES } from "./nodes.ts";
import type { Noun } from "./noun.ts";
import { ONBOARDINGS } from "./onboardings.ts";
import { OPERATIONS } from "./operations.ts";
import { POWER_OVERRIDES } from "./power-overrides.ts";
import { PROFILES } from "./profiles.ts";
import { RECORDS } from "./records.ts";
import { REPAIRS } from "./repairs.ts";
import { ROCE } from "./roce.ts";
import { SESSIONS } from "./sessions.ts";
import { SIGNAL_SENDERS } from "./signal-senders.ts";
import { SIGNALS } from "./signals.ts";
import { SITES } from "./sites.ts";
import { SKUS } from "./skus.ts";
import { SSH_KEY_GROUPS } from "./ssh-key-groups.ts";
import { SSH_KEYS } from "./ssh-keys.ts";
import { TASKS } from "./tasks.ts";
import { TOKENS } from "./tokens.ts";
import { WARNINGS } from "./warnings.ts";
import { WEBHOOKS } from "./webhooks.ts";

/** All kinds of objects (nouns) that `muster get` and similar commands know, by their plural names, in the order of the help. */
export const NOUNS = {
  nodes: NODES,
  onboardings: ONBOARDINGS,
  decommissions: DECOMMISSIONS,
  operations: OPERATIONS,
  batches: BATCHES,
  sites: SITES,
  profiles: PROFILES,
  skus: SKUS,
  allocations: ALLOCATIONS,
  instances: INSTANCES,
  "ssh-keys": SSH_KEYS,
  "ssh-key-groups": SSH_KEY_GROUPS,
  records: RECORDS,
  repairs: REPAIRS,
  drift: DRIFT,
  breakers: BREAKERS,
  tasks: TASKS,
  roce: ROCE,
  "power-overrides": POWER_OVERRIDES,
  warnings: WARNINGS,
  tokens: TOKENS,
  sessions: SESSIONS,
  webhooks: WEBHOOKS,
  deliveries: DELIVERIES,
  approvals: APPROVALS,
  "external-attempts": EXTERNAL_ATTEMPTS,
  signals: SIGNALS,
  "signal-senders": SIGNAL_SENDERS,
  events: EVENTS,
  "audit-entries": AUDIT,
} as const satisfies Record<string, Noun>;
export const NOUN_LIST: readonly Noun[] = Object.values(NOUNS);
