import type { ReactNode } from "react";
import { StatusBadge } from "./status-badge.tsx";

const WORDS: Readonly<Record<string, string>> = {
  synced: "accounts have the keys",
  syncing: "a change is due",
  error: "an account lacks its keys",
};

/** Shows whether the accounts of allocations have the SSH keys that they should have (docs/ssh-keys.md). */
export const SyncBadge = ({ status }: { readonly status: string }): ReactNode => (
  <StatusBadge status={status}>{WORDS[status] ?? status}</StatusBadge>
);
