/**
 * How much of what one node's host, and others of it, say is kept: bounds in the database, for all hubs together. What is beyond them goes, the oldest
 * first, in the transaction that brings something newer; what nobody may lose is refused instead, with what to do. Retention takes the rest by its age.
 */
export const KEPT_OF_A_NODE = {
  /** Readiness signals of each source. A good agent sends one every two minutes: seven hours, for whoever looks what it said. */
  signals: 200,
  /** Conditions of names that an external system made up; those of Muster's own table are as many as the table. */
  ownConditions: 64,
  /** Events that its host can bring about as often as it likes, of each type: none of them pushes out another. */
  hostEvents: {
    enrolled: 50,
    certificate_renewed: 100,
    /** What a boot that comes back is known by. */
    session_opened: 500,
    duplicate_identity: 20,
    agent_noisy: 50,
    condition_stale: 100,
    /** Those that the heartbeat makes: it falls silent and is heard of again. */
    status_changed: 200,
  },
  /** Certificates, beside those that count: the replaced ones. One that is not known any more is not accepted, so none comes back to life by that. */
  certificates: 200,
  /** Tasks that nobody has carried out yet. */
  openTasks: 50,
} as const;
