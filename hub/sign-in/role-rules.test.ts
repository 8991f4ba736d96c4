import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Claims, grantOf, picked, RoleRules } from "./role-rules.ts";

const rules = RoleRules.parse([
  { claim: "groups", value: "gpu-admins", role: "admin" },
  { claim: ["realm_access", "roles"], value: "ops-dc1", role: "viewer", sites: ["dc1"] },
  { claim: ["realm_access", "roles"], value: "ops-dc2", role: "viewer", sites: ["dc2", "dc1"] },
  { claim: "https://example.com/team", value: "night", role: "viewer", sites: ["dc3"] },
  { claim: "scope", value: "muster:read", role: "viewer" },
  { claim: "tenant_roles", value: "acme", role: "tenant", tenant: "acme" },
]);
const granted = (role: string, sites: string[] | null = null, tenant: string | null = null) => ({
  kind: "granted",
  role,
  sites,
  tenant,
});
const NONE = { kind: "no_role" };

describe("the grant of a person's claims", () => {
  it.each<[string, Claims, object]>([
    ["no claim", {}, NONE],
    ["a group that a rule names", { groups: ["x", "gpu-admins"] }, granted("admin")],
    ["a single text in place of a list", { groups: "gpu-admins" }, granted("admin")],
    ["a longer group name", { groups: ["gpu-admins-2"] }, NONE],
    ["another case of letters", { groups: ["GPU-Admins"] }, NONE],
    ["a list inside a list", { groups: [["gpu-admins"]] }, NONE],
    ["an object", { groups: { "gpu-admins": true } }, NONE],
    ["a claim inside another", { realm_access: { roles: ["ops-dc1"] } }, granted("viewer", ["dc1"])],
    ["the path as one name", { "realm_access.roles": ["ops-dc1"] }, NONE],
    ["a list where the path needs an object", { realm_access: [{ roles: ["ops-dc1"] }] }, NONE],
    ["two rules of one role", { realm_access: { roles: ["ops-dc2", "ops-dc1"] } }, granted("viewer", ["dc1", "dc2"])],
    ["a claim whose name is a URL", { "https://example.com/team": "night" }, granted("viewer", ["dc3"])],
    ["a scope", { scope: "openid muster:read" }, granted("viewer")],
    ["a part of a scope", { scope: "muster:reading" }, NONE],
    [
      "a rule for all sites beside one for a site",
      { scope: "muster:read", realm_access: { roles: ["ops-dc1"] } },
      granted("viewer"),
    ],
    [
      "the first rule's role, and no sites of another role",
      { groups: ["gpu-admins"], scope: "muster:read" },
      granted("admin"),
    ],
    ["a tenant", { tenant_roles: ["acme"] }, granted("tenant", null, "acme")],
    [
      "a rule of another tenant adds nothing",
      { tenant_roles: ["acme"], realm_access: { roles: ["ops-dc1"] } },
      granted("viewer", ["dc1"]),
    ],
    ["inherited properties", Object.create({ groups: ["gpu-admins"] }) as Claims, NONE],
    ["a left-out list of groups", { _claim_names: { groups: "src1" } }, { kind: "groups_overage", claim: "groups" }],
    ["the short mark of Entra ID", { hasgroups: true }, { kind: "groups_overage", claim: "groups" }],
    ["a left-out list that no rule reads", { _claim_names: { wids: "src1" } }, NONE],
    [
      "a rule that matches although groups are left out",
      { _claim_names: { groups: "src1" }, scope: "muster:read" },
      granted("viewer"),
    ],
  ])("%s", (_, claims, expected) => {
    expect(grantOf(claims, rules)).toEqual(expected);
  });

  it("is nothing for any claims that hold none of the values", () => {
    const value = fc.string().filter((text) => !rules.some((rule) => text.split(" ").includes(rule.value)));
    const inner = fc.oneof(value, fc.integer(), fc.constant(null), fc.array(value));
    const claims = fc.dictionary(
      fc.constantFrom("groups", "realm_access", "scope", "sub"),
      fc.oneof(inner, fc.dictionary(fc.constantFrom("roles", "x"), inner)),
    );
    fc.assert(
      fc.property(claims, (one) => {
        expect(grantOf(one, rules)).toEqual(NONE);
      }),
    );
  });

  it("is the same from the picked claims, which hold no value that no rule names", () => {
    const group = fc.constantFrom("gpu-admins", "ops-dc1", "ops-dc2", "secret-project", "acme");
    const claims = fc.record(
      {
        groups: fc.oneof(group, fc.array(group)),
        realm_access: fc.record({ roles: fc.array(group) }, { requiredKeys: [] }),
        tenant_roles: fc.array(group),
        _claim_names: fc.dictionary(fc.constantFrom("groups", "wids"), fc.constant("src1")),
        phone_number: fc.constant("+1 555"),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(claims, (one) => {
        const kept = picked(one, rules);
        expect(grantOf(kept, rules)).toEqual(grantOf(one, rules));
        expect(kept).not.toHaveProperty("phone_number");
        if (Array.isArray(one.groups)) expect(JSON.stringify(kept)).not.toContain("secret-project");
      }),
    );
  });

  it("comes from rules like those that the documents show", () => {
    const text = readFileSync(new URL("../../docs/sign-in.md", import.meta.url), "utf8");
    const shown = RoleRules.parse(JSON.parse(/```json\n(.*?)```/s.exec(text)?.[1] ?? ""));
    expect(grantOf({ realm_access: { roles: ["dc1-operators"] } }, shown)).toEqual(granted("operator", ["dc1"]));
    expect(grantOf({ client_id: "scheduler" }, shown)).toEqual(granted("provisioner"));
    expect(grantOf({ groups: ["acme"] }, shown)).toEqual(granted("tenant", null, "acme"));
  });

  it("comes from a closed form of rules", () => {
    const rule = { claim: "groups", value: "g", role: "admin" };
    for (const wrong of [
      [],
      [{ ...rule, role: "root" }],
      [{ ...rule, site: "dc1" }],
      [{ ...rule, value: "" }],
      [{ ...rule, sites: [] }],
      [{ ...rule, tenant: "acme" }],
      [{ ...rule, role: "tenant" }],
    ])
      expect(RoleRules.safeParse(wrong).success).toBe(false);
  });
});
