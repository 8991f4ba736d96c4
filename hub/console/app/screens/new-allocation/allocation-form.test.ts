import { expect, it } from "vitest";
import { type AllocationValues, checkAllocation, keysOf, labelsOf } from "./allocation-form.ts";

const GOOD: AllocationValues = {
  by: "node",
  hostname: "c07u41",
  sku_id: "",
  site_id: "",
  tenant: "acme",
  login_user: "ada",
  ssh_keys: "ssh-ed25519 AAAA ada@acme\n",
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
  expect(said("ssh-ed25519 AAAA\nhello")).toContain("line 2");
  expect(said("sk-ssh-ed25519@openssh.com AAAA\necdsa-sha2-nistp256 AAAA")).toBeUndefined();
  expect(said(Array.from({ length: 33 }, () => "ssh-rsa AAAA").join("\n"))).toContain("32");
});

it("reads keys and labels, one a line", () => {
  expect(keysOf("a\r\n\r\n b \n")).toEqual(["a", "b"]);
  expect(labelsOf("order = 4711\nnote=a=b\n")).toEqual({ order: "4711", note: "a=b" });
});
