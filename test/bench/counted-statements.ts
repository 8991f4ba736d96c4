/** Counts the SQL statements that this process sends, over all its connections. */
import { Client } from "pg";

let statements = 0;
const { query } = Client.prototype;
Client.prototype.query = function counted(this: Client, ...args: unknown[]) {
  statements += 1;
  return Reflect.apply(query, this, args);
} as typeof query;

/** Returns a function that says how many SQL statements this process has sent since the call. */
export function countStatements(): () => number {
  const before = statements;
  return () => statements - before;
}
