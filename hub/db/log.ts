/** What the database layer needs of a logger: a constant message, and fields that never hold a secret. */
export type DatabaseLog = {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
};
