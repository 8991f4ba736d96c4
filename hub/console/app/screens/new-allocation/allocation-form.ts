import { account, hostname, present, sku } from "../../forms/checks.ts";
import type { Errors } from "../../forms/form-errors.ts";

export interface AllocationValues {
  readonly by: "node" | "sku";
  readonly hostname: string;
  readonly sku_id: string;
  readonly site_id: string;
  readonly tenant: string;
  readonly login_user: string;
  readonly ssh_keys: string;
  readonly root: boolean;
  readonly labels: string;
  readonly ends_at: string;
}

const KEY = /^(?:ssh-|ecdsa-|sk-)\S+ \S+/;

export const keysOf = (text: string): string[] =>
  text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "");

/** Reads labels of the form `order=4711`, one a line. */
export function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    keysOf(text).map((line) => {
      const at = line.indexOf("=");
      return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
}

function keysError(text: string): string | undefined {
  const keys = keysOf(text);
  if (keys.length === 0) return "is missing: the tenant could not log in";
  if (keys.length > 32) return "has more than 32 keys";
  const wrong = keys.findIndex((key) => !KEY.test(key));
  if (wrong < 0) return undefined;
  return keys[wrong]?.includes("PRIVATE KEY") === true
    ? "is a private key. Give the public key, usually the file that ends in .pub"
    : `has no public SSH key in line ${wrong + 1}`;
}

const labelsError = (text: string): string | undefined => {
  const wrong = keysOf(text).findIndex((line) => !/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}\s*=/.test(line));
  return wrong < 0 ? undefined : `has no label of the form name=value in line ${wrong + 1}`;
};

/** Checks the form at a time in milliseconds, because an allocation cannot end in the past. */
export const checkAllocation = (values: AllocationValues, now: number): Errors<AllocationValues> => ({
  ...(values.by === "node"
    ? { hostname: hostname(values.hostname) }
    : { sku_id: sku(values.sku_id), site_id: present(values.site_id) }),
  tenant: values.tenant.length > 128 ? "is longer than 128 characters" : present(values.tenant),
  login_user: account(values.login_user),
  ssh_keys: keysError(values.ssh_keys),
  labels: labelsError(values.labels),
  ends_at: values.ends_at === "" || Date.parse(values.ends_at) > now ? undefined : "is in the past",
});
