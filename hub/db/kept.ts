/**
 * The largest number of rows that one node may have in tables such as conditions, events and tasks, counted over all hubs. If a node has too many
 * rows in one table, the transaction that adds a newer row deletes the node's oldest rows. For rows that must not be lost, the hub refuses a new row
 * over the limit of a node, with advice in the error. Apart from the limits for each node, retention deletes old rows by age.
 */
export const KEPT_OF_A_NODE = {
  /**
   * The number of a node's readiness signals that the hub keeps for each source of signals. A healthy agent sends a readiness signal every two
   * minutes, so 200 signals cover about seven hours for an operator to read.
   */
  signals: 200,
  /**
   * The largest number of a node's conditions whose types an external system defined. Muster's own condition types need no limit, because their
   * number is fixed.
   */
  ownConditions: 64,
  /**
   * Limits, by type, for events that a host can cause as often as it likes. With a limit for each event type, events of one type never displace
   * events of another type.
   */
  hostEvents: {
    enrolled: 50,
    certificate_renewed: 100,
    /** Events of the type `session_opened` hold the known boot ids, so that the hub recognizes a boot id that a host reports again. */
    session_opened: 500,
    duplicate_identity: 20,
    agent_noisy: 50,
    condition_stale: 100,
    /**
     * The limit for events of type `status_changed` counts only changes by the heartbeat: an agent falls silent, or the hub hears a silent agent
     * again.
     */
    status_changed: 200,
  },
  /**
   * The number of a node's replaced certificates that the hub keeps. After the hub deletes the record of a certificate, it refuses the certificate as
   * unknown.
   */
  certificates: 200,
  /** The largest number of a node's tasks that the agent has not finished yet. */
  openTasks: 50,
} as const;
