import { serversOf } from "../db/servers.ts";

/** What an operator checks first if the hub cannot use its database, by the error code of Node.js or PostgreSQL (SQLSTATE). */
const CHECKS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "Check that PostgreSQL listens there, and that host and port in DATABASE_URL are right.",
  ENOTFOUND: "Check the host name in DATABASE_URL.",
  EAI_AGAIN: "Check the host name in DATABASE_URL, and this machine's name server.",
  ETIMEDOUT: "Check the host in DATABASE_URL, and that no firewall is between this machine and it.",
  "28P01": "Check user and password in DATABASE_URL.",
  "28000": "Check the user in DATABASE_URL, and that the server's pg_hba.conf admits it from this machine.",
  "3D000": "Create the database, or correct its name in DATABASE_URL.",
  "25006": "Check that one of the servers in DATABASE_URL takes writes.",
  "42501": "Give the user in DATABASE_URL the right to create tables, for example as the owner of the database.",
};

/**
 * Returns the error for a database that the setting DATABASE_URL names and that the hub cannot use. The error's message names the setting and the
 * database server, and never the user or the password.
 */
export function databaseFault(url: string, error: unknown): Error {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const why = error instanceof Error && error.message !== "" ? error.message : code;
  const check = CHECKS[code] ?? "Check DATABASE_URL.";
  return new Error(`The database ${placeOf(url)} of DATABASE_URL cannot be used: ${why}. ${check}`, { cause: error });
}

/** Returns the servers and the name of the database in the URL, without user and password. */
function placeOf(url: string): string {
  const parsed = serversOf(url).map((one) => URL.parse(one));
  return `${parsed.map((one) => one?.host ?? "").join(",")}${parsed[0]?.pathname ?? ""}`;
}
