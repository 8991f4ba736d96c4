import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { api, read } from "./client.ts";
import { question } from "./query-client.ts";
import type { Answer } from "./schema.ts";

export type StoredKey = Answer<"listSshKeys">["items"][number];
export type KeyGroup = Answer<"listSshKeyGroups">["items"][number];

/** The hub sends no event when the SSH keys or key groups of a tenant change, so each screen asks for them when it opens. */
export const SSH_KEYS = "ssh-keys";

const PAGE = 200;
/** A tenant has 1,000 keys at most, and 200 groups. */
const MOST_PAGES = 5;

async function everyKey(tenant: string, signal: AbortSignal): Promise<StoredKey[]> {
  const keys: StoredKey[] = [];
  let cursor: string | undefined;
  for (let n = 0; n < MOST_PAGES; n += 1) {
    const query = { tenant, limit: PAGE, cursor };
    const page = await read(api.GET("/api/v1/admin/ssh-keys", { params: { query }, signal }));
    keys.push(...page.items);
    if (page.next_cursor === null) break;
    cursor = page.next_cursor;
  }
  return keys;
}

const keysOf = (tenant: string) => question([SSH_KEYS], [SSH_KEYS, "of", tenant], (signal) => everyKey(tenant, signal));

const groupsOf = (tenant: string) =>
  question([SSH_KEYS], [SSH_KEYS, "groups of", tenant], async (signal) => {
    const query = { tenant, limit: PAGE };
    return (await read(api.GET("/api/v1/admin/ssh-key-groups", { params: { query }, signal }))).items;
  });

export interface TenantKeys {
  readonly keys: readonly StoredKey[] | undefined;
  readonly groups: readonly KeyGroup[] | undefined;
  /**
   * The error because of which the console does not know the tenant's SSH keys or groups; null if there is no error, for example while the hub has
   * not answered yet.
   */
  readonly error: Error | null;
  readonly retry: () => void;
}
const UNKNOWN: TenantKeys = { keys: undefined, groups: undefined, error: null, retry: () => undefined };

/** The stored SSH keys and key groups of one tenant; both are undefined until the hub has answered, and if `tenant` is empty. */
export function useTenantKeys(tenant: string): TenantKeys {
  const keys = useQuery({ ...keysOf(tenant), enabled: tenant !== "" });
  const groups = useQuery({ ...groupsOf(tenant), enabled: tenant !== "" });
  return {
    keys: keys.data,
    groups: groups.data,
    error: keys.error ?? groups.error,
    retry: () => {
      if (keys.isError) void keys.refetch();
      if (groups.isError) void groups.refetch();
    },
  };
}

const TYPING_MS = 400;

/** The stored SSH keys and key groups of the tenant whose name a person types; the console asks the hub for them after a pause in the typing. */
export function useKeysOfTyped(typed: string): TenantKeys {
  const tenant = typed.trim();
  const [settled] = useDebouncedValue(tenant, TYPING_MS);
  const found = useTenantKeys(settled);
  return settled === tenant ? found : UNKNOWN;
}
