import { describe, expect, it } from "vitest";
import { databaseFault } from "./database-fault.ts";

const URL_TEXT = "postgres://muster:hunter2@db.example:5433/fleet?sslmode=require";
const withCode = (message: string, code: string): Error => Object.assign(new Error(message), { code });

describe("the error for a database that the hub cannot use", () => {
  it("names the setting, the server and the next check, and no password", () => {
    const fault = databaseFault(URL_TEXT, withCode("connect ECONNREFUSED 10.0.0.1:5433", "ECONNREFUSED"));
    expect(fault.message).toBe(
      "The database db.example:5433/fleet of DATABASE_URL cannot be used: connect ECONNREFUSED 10.0.0.1:5433. Check that PostgreSQL listens there, and that host and port in DATABASE_URL are right.",
    );
    const refused = databaseFault(URL_TEXT, withCode('password authentication failed for user "muster"', "28P01"));
    expect(refused.message).toContain("Check user and password in DATABASE_URL.");
    expect(databaseFault(URL_TEXT, withCode("odd", "XX000")).message).toMatch(/: odd\. Check DATABASE_URL\.$/);
    expect(databaseFault(URL_TEXT, withCode("", "ETIMEDOUT")).message).toContain(
      "cannot be used: ETIMEDOUT. Check the host",
    );
    const several = databaseFault("postgres://u:hunter2@a:1,b/fleet", withCode("it takes no writes", "25006"));
    expect(several.message).toMatch(/^The database a:1,b\/fleet of DATABASE_URL cannot be used: .* one of the servers/);
    for (const error of [fault, refused, several]) expect(error.message).not.toContain("hunter2");
  });
});
