import { account, hostname, present, sku, whole } from "../../forms/checks.ts";
import type { Errors } from "../../forms/form-errors.ts";
import { sshKeyError } from "../../forms/ssh-key.ts";
import { MOST_KEYS_OF_AN_ACCOUNT, tenant } from "../../forms/tenant-checks.ts";

export interface AllocationValues {
  /** The allocation is for a node by its hostname, for one free node of a SKU, or for several free nodes of which the tenant gets all or none. */
  readonly by: "node" | "sku" | "several";
  readonly hostname: string;
  readonly sku_id: string;
  readonly site_id: string;
  readonly count: string;
  readonly same_rack: boolean;
  readonly name_prefix: string;
  readonly tenant: string;
  readonly login_user: string;
  /** Whether the allocation's request contains the SSH keys themselves, or names stored keys and key groups of the tenant. */
  readonly keys_by: "given" | "stored";
  readonly ssh_keys: string;
  readonly ssh_key_ids: readonly string[];
  readonly ssh_key_group_ids: readonly string[];
  readonly root: boolean;
  readonly labels: string;
  readonly ends_at: string;
}

export const keysOf = (text: string): string[] =>
  text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "");

/** Reads labels of the form `order=4711`, one per line. */
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
  if (keys.length > MOST_KEYS_OF_AN_ACCOUNT) return `has more than ${MOST_KEYS_OF_AN_ACCOUNT} keys`;
  const wrong = keys.findIndex((key) => sshKeyError(key) !== undefined);
  return wrong < 0 ? undefined : `line ${wrong + 1} ${sshKeyError(keys[wrong] ?? "")}`;
}

const namedError = (ids: readonly string[]): string | undefined =>
  ids.length > MOST_KEYS_OF_AN_ACCOUNT ? `names more than ${MOST_KEYS_OF_AN_ACCOUNT}` : undefined;

const storedErrors = ({
  ssh_key_ids: keys,
  ssh_key_group_ids: groups,
}: AllocationValues): Errors<AllocationValues> => ({
  ssh_key_ids: keys.length + groups.length === 0 ? "is missing: choose a key or a group" : namedError(keys),
  ssh_key_group_ids: namedError(groups),
});

/** The keys of the request. In a request for an allocation, the API takes either SSH keys or the ids of stored keys and groups. */
export const keysBody = (values: AllocationValues) =>
  values.keys_by === "given"
    ? { ssh_keys: keysOf(values.ssh_keys), ssh_key_ids: [], ssh_key_group_ids: [] }
    : { ssh_keys: [], ssh_key_ids: [...values.ssh_key_ids], ssh_key_group_ids: [...values.ssh_key_group_ids] };

const labelsError = (text: string): string | undefined => {
  const wrong = keysOf(text).findIndex((line) => !/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}\s*=/.test(line));
  return wrong < 0 ? undefined : `has no label of the form name=value in line ${wrong + 1}`;
};

/** The largest number of nodes in one allocation request to the API, and the largest length of their name prefix. */
const count = whole(1, 64);
const MOST_OF_A_PREFIX = 249;
const namePrefix = (text: string): string | undefined =>
  text.trim().length > MOST_OF_A_PREFIX ? `has more than ${MOST_OF_A_PREFIX} characters` : undefined;

/** Checks the form for an allocation; `now` is the present time in milliseconds, because an allocation cannot end in the past. */
export const checkAllocation = (values: AllocationValues, now: number): Errors<AllocationValues> => ({
  ...(values.by === "node"
    ? { hostname: hostname(values.hostname) }
    : { sku_id: sku(values.sku_id), site_id: present(values.site_id) }),
  ...(values.by === "several" ? { count: count(values.count), name_prefix: namePrefix(values.name_prefix) } : {}),
  tenant: tenant(values.tenant),
  login_user: account(values.login_user),
  ...(values.keys_by === "given" ? { ssh_keys: keysError(values.ssh_keys) } : storedErrors(values)),
  labels: labelsError(values.labels),
  ends_at: values.ends_at === "" || Date.parse(values.ends_at) > now ? undefined : "is in the past",
});
