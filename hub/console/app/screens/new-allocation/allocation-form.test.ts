import { expect, it } from "vitest";
import { type AllocationValues, checkAllocation, keysBody, keysOf, labelsOf } from "./allocation-form.ts";

const blob = (...parts: string[]): string =>
  btoa(parts.map((part) => `\0\0\0${String.fromCharCode(part.length)}${part}`).join(""));
const KEY = `ssh-ed25519 ${blob("ssh-ed25519", "k".repeat(32))} ada@acme`;
const GOOD: AllocationValues = {
  by: "node",
  hostname: "c07u41",
  sku_id: "",
  site_id: "",
  count: "",
  same_rack: false,
  name_prefix: "",
  tenant: "acme",
  login_user: "ada",
  keys_by: "given",
  ssh_keys: `${KEY}\n`,
  ssh_key_ids: [],
  ssh_key_group_ids: [],
  root: false,
  labels: "order=4711",
  ends_at: "",
};
const NOW = Date.parse("2026-01-02T00:00:00Z");
const wrong = (changes: Partial<AllocationValues>): string[] =>
  Object.entries(checkAllocation({ ...GOOD, ...changes }, NOW)).flatMap(([name, error]) =>
    error === undefined ? [] : [name],
  );

it("takes a whole form, by node or by SKU and site", () => {
  expect(wrong({})).toEqual([]);
  expect(wrong({ by: "sku", hostname: "" })).toEqual(["sku_id", "site_id"]);
  expect(wrong({ by: "sku", hostname: "", sku_id: "cpu", site_id: "1" })).toEqual([]);
});

it("takes a number of nodes of a SKU and site, which it checks only then", () => {
  const several = { by: "several", hostname: "", sku_id: "cpu", site_id: "1", count: "4" } as const;
  expect(wrong(several)).toEqual([]);
  expect(wrong({ ...several, name_prefix: "worker" })).toEqual([]);
  for (const count of ["", "0", "65", "1.5", "four"]) expect(wrong({ ...several, count })).toEqual(["count"]);
  expect(wrong({ ...several, count: "64" })).toEqual([]);
  expect(wrong({ ...several, name_prefix: "a".repeat(250) })).toEqual(["name_prefix"]);
  expect(wrong({ ...several, sku_id: "", site_id: "" })).toEqual(["sku_id", "site_id"]);
  expect(wrong({ ...several, by: "sku", count: "" })).toEqual([]);
});

it("says which field is wrong", () => {
  expect(wrong({ hostname: "C07" })).toEqual(["hostname"]);
  expect(wrong({ tenant: " " })).toEqual(["tenant"]);
  expect(wrong({ tenant: "a".repeat(129) })).toEqual(["tenant"]);
  expect(wrong({ login_user: "Ada" })).toEqual(["login_user"]);
  expect(wrong({ labels: "order" })).toEqual(["labels"]);
  expect(wrong({ ends_at: "2026-01-01T00:00" })).toEqual(["ends_at"]);
  expect(wrong({ ends_at: "2027-01-01T00:00" })).toEqual([]);
});

it("wants public keys, and warns of a private one", () => {
  const said = (ssh_keys: string) => checkAllocation({ ...GOOD, ssh_keys }, NOW).ssh_keys;
  expect(said("")).toContain("is missing");
  expect(said("-----BEGIN OPENSSH PRIVATE KEY-----")).toContain("private key");
  expect(said(`${KEY}\nhello`)).toContain("line 2 is no public key");
  expect(said(`${KEY}\r\n\r\n${KEY}`)).toBeUndefined();
  expect(said(Array.from({ length: 33 }, () => KEY).join("\n"))).toContain("32");
});

it("reads keys and labels, one a line", () => {
  expect(keysOf("a\r\n\r\n b \n")).toEqual(["a", "b"]);
  expect(labelsOf("order = 4711\nnote=a=b\n")).toEqual({ order: "4711", note: "a=b" });
});

it("names stored keys and groups in place of the keys themselves", () => {
  const stored = { keys_by: "stored", ssh_keys: "hello" } as const;
  const many = Array.from({ length: 33 }, (_, n) => `k${n}`);
  expect(wrong(stored)).toEqual(["ssh_key_ids"]);
  expect(wrong({ ...stored, ssh_key_ids: ["k1"] })).toEqual([]);
  expect(wrong({ ...stored, ssh_key_group_ids: ["g1"] })).toEqual([]);
  expect(wrong({ ...stored, ssh_key_ids: many })).toEqual(["ssh_key_ids"]);
  expect(wrong({ ...stored, ssh_key_ids: ["k1"], ssh_key_group_ids: many })).toEqual(["ssh_key_group_ids"]);
  const both = { ...GOOD, ssh_key_ids: ["k1"], ssh_key_group_ids: ["g1"] };
  expect(keysBody(both)).toEqual({ ssh_keys: [KEY], ssh_key_ids: [], ssh_key_group_ids: [] });
  expect(keysBody({ ...both, keys_by: "stored" })).toEqual({
    ssh_keys: [],
    ssh_key_ids: ["k1"],
    ssh_key_group_ids: ["g1"],
  });
});
