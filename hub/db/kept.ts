/**
 * The largest number of rows that one node may have in each table, counted over all hubs. If a node has too many rows in a table, the transaction
 * that adds a row deletes the node's oldest rows. For rows that must not be lost, the hub refuses a new row over the node's limit, with advice in the
 * error. Besides the limits on the number of a node's rows, the hub deletes rows that are too old.
 */
export const KEPT_OF_A_NODE = {
  /** A healthy agent sends a readiness signal every two minutes, so the 200 newest signals of an agent show an operator about seven hours. */
  signals: 200,
  /** The number of newest signals from external systems about a node that the hub keeps, all senders together. */
  receivedSignals: 200,
  /**
   * The largest number of a node's conditions whose types an external system defined. Muster's own condition types need no limit, because their
   * number is fixed.
   */
  ownConditions: 64,
  /** For each type of event that a host can cause without limit, the number of newest events that the hub keeps for a node. */
  hostEvents: {
    enrolled: 50,
    certificate_renewed: 100,
    /** Events of the type `session_opened` hold the known boot ids, so that the hub recognizes a boot id that a host reports again. */
    session_opened: 500,
    duplicate_identity: 20,
    agent_noisy: 50,
    condition_stale: 100,
    readiness_lapsed: 100,
    /** A machine that somebody switches off and on again in MAAS causes drift each time. */
    drift: 200,
    /** The limit for events of type `status_changed` counts only the changes that the hub makes because of an agent's heartbeats. */
    status_changed: 200,
  },
  /** After the hub deletes the record of a replaced certificate, the hub refuses the certificate as unknown. */
  certificates: 200,
  /** The number of newest attempts of external systems to provision a node that the hub keeps for the node. */
  externalAttempts: 50,
  /** The largest number of a node's tasks that the agent has not finished yet. */
  openTasks: 50,
} as const;

/** The limits for signals for which the hub has found no node, or no node at the sites of their sender. */
export const KEPT_WITHOUT_NODE = {
  /**
   * The largest numbers of signals from external systems that the hub keeps until their node appears: for one sender, and for all senders together.
   */
  parkedOfSender: 500,
  parked: 5_000,
  /** The hub keeps a signal about a node that has not appeared for one day only, because the sender can send the signal again. */
  parkedSeconds: 86_400,
  /** For each sender, the hub keeps this many of the newest signals whose node never appeared. */
  homelessOfSender: 500,
} as const;
