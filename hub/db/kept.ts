/**
 * How many rows one node may have in each of these tables, counted over all hubs. Beyond the limit the oldest rows are deleted in the transaction
 * that adds a newer one. Rows that must not be lost are refused instead, with advice in the error. Retention deletes old rows by age.
 */
export const KEPT_OF_A_NODE = {
  /** Readiness signals of each source. A healthy agent sends one every two minutes, so 200 cover about seven hours for an operator to read. */
  signals: 200,
  /** Conditions whose types an external system defined. Muster's own types have a fixed number. */
  ownConditions: 64,
  /** Events that the host can cause as often as it likes, counted by type, so no type displaces another. */
  hostEvents: {
    enrolled: 50,
    certificate_renewed: 100,
    /** Events of this type hold the known boot ids, so the hub recognizes a boot that returns. */
    session_opened: 500,
    duplicate_identity: 20,
    agent_noisy: 50,
    condition_stale: 100,
    /** Only the changes that the heartbeat makes: the agent falls silent, or it is heard again. */
    status_changed: 200,
  },
  /** Replaced certificates. A deleted certificate is unknown to the hub and is therefore refused. */
  certificates: 200,
  /** Tasks that the agent has not finished yet. */
  openTasks: 50,
} as const;
