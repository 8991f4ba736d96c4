import { expect, it } from "vitest";
import { checkToken, needsTenant, ROLE_WORDS, type Role, type TokenValues, tokenBody } from "./token-form.ts";

const GOOD: TokenValues = {
  name: "rack-planner",
  role: "viewer",
  site_ids: [],
  tenant: " acme ",
  expires_in_days: "90",
};

it("asks for a tenant for the roles of tenants, and sends it only for them", () => {
  const roles = Object.keys(ROLE_WORDS) as Role[];
  expect(roles.filter(needsTenant)).toEqual(["tenant", "repair"]);
  for (const role of roles) {
    expect(checkToken({ ...GOOD, role, tenant: "" }).tenant).toBe(needsTenant(role) ? "is missing" : undefined);
    expect(tokenBody({ ...GOOD, role }).tenant).toBe(needsTenant(role) ? "acme" : undefined);
  }
});

it("says which field is wrong", () => {
  expect(checkToken(GOOD)).toEqual({});
  expect(checkToken({ ...GOOD, name: "a b" }).name).toContain("is no name");
  expect(checkToken({ ...GOOD, expires_in_days: "367" }).expires_in_days).toContain("366");
});

it("limits a token to sites only if somebody chose sites", () => {
  expect(tokenBody(GOOD)).toEqual({ name: "rack-planner", role: "viewer", expires_in_days: 90 });
  expect(tokenBody({ ...GOOD, site_ids: ["1"] }).site_ids).toEqual(["1"]);
});
