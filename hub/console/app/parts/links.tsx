import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

/** Links to single objects. Only this file knows which screen shows each kind of object. */
export const shortId = (id: string): string => id.slice(0, 8);

interface NamedProps {
  readonly id: string;
  readonly children?: ReactNode;
}

/** The URL of a node's screen. */
export const nodePath = (id: string): string => `/console/nodes/${id}`;

export const NodeLink = ({ id, children }: NamedProps): ReactNode => (
  <Link to="/nodes/$id" params={{ id }}>
    {children ?? <code>{shortId(id)}</code>}
  </Link>
);

export const OperationLink = ({ id, children }: NamedProps & { readonly kind?: string }): ReactNode => (
  <Link to="/operations/$id" params={{ id }}>
    {children ?? <code>{shortId(id)}</code>}
  </Link>
);

export const BatchLink = ({
  kind,
  id,
  children,
}: NamedProps & { readonly kind: "onboarding" | "decommission" }): ReactNode => (
  <Link to="/batches/$kind/$id" params={{ kind, id }}>
    {children ?? <code>{shortId(id)}</code>}
  </Link>
);

export const AllocationLink = ({ id, children }: NamedProps): ReactNode => (
  <Link to="/allocations/$id" params={{ id }}>
    {children ?? <code>{shortId(id)}</code>}
  </Link>
);

export const RecordLink = ({ id, children }: NamedProps): ReactNode => (
  <Link to="/records/$id" params={{ id }}>
    {children ?? <code>{shortId(id)}</code>}
  </Link>
);

export const RepairLink = ({ id, children }: NamedProps): ReactNode => (
  <Link to="/repairs/$id" params={{ id }}>
    {children ?? <code>{shortId(id)}</code>}
  </Link>
);

export const SiteLink = ({ id, children }: NamedProps): ReactNode => (
  <Link to="/sites/$id" params={{ id }}>
    {children ?? <code>{shortId(id)}</code>}
  </Link>
);

export const WebhookLink = ({ id, children }: NamedProps): ReactNode => (
  <Link to="/webhooks/$id" params={{ id }}>
    {children ?? <code>{shortId(id)}</code>}
  </Link>
);

export const TokenLink = ({ id, children }: NamedProps): ReactNode => (
  <Link to="/tokens/$id" params={{ id }}>
    {children ?? <code>{shortId(id)}</code>}
  </Link>
);

export const ApprovalLink = ({ id, children }: NamedProps): ReactNode => (
  <Link to="/approvals/$id" params={{ id }}>
    {children ?? <code>{shortId(id)}</code>}
  </Link>
);

export const SshKeyLink = ({ id, children }: NamedProps): ReactNode => (
  <Link to="/ssh-keys/$id" params={{ id }}>
    {children ?? <code>{shortId(id)}</code>}
  </Link>
);

export const KeyGroupLink = ({ id, children }: NamedProps): ReactNode => (
  <Link to="/ssh-key-groups/$id" params={{ id }}>
    {children ?? <code>{shortId(id)}</code>}
  </Link>
);

/** A link to the list of the stored SSH keys that a filter selects. */
export const SshKeysLink = ({
  search,
  children,
}: {
  readonly search: { readonly tenant: string };
  readonly children: ReactNode;
}): ReactNode => (
  <Link to="/ssh-keys" search={search}>
    {children}
  </Link>
);

/** A link to the list of nodes that differ from their machines in MAAS and that a filter selects. */
export const DriftLink = ({
  search,
  children,
}: {
  readonly search: Readonly<Record<string, string | undefined>>;
  readonly children: ReactNode;
}): ReactNode => (
  <Link to="/drift" search={search as never}>
    {children}
  </Link>
);

/** The nodes that a filter selects. */
export const NodesLink = ({
  search,
  children,
}: {
  readonly search: Readonly<Record<string, unknown>>;
  readonly children: ReactNode;
}): ReactNode => (
  <Link to="/nodes" search={search as never}>
    {children}
  </Link>
);
