import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

/**
 * Links to single objects. An object whose screen the console does not have yet is shown by the other page of the hub, so each kind of object has one
 * place that knows where its screen is.
 */
const OTHER_PAGE = "/#/";

export const shortId = (id: string): string => id.slice(0, 8);

interface NamedProps {
  readonly id: string;
  readonly children?: ReactNode;
}

const ToOtherPage = ({ path, children }: { readonly path: string; readonly children: ReactNode }): ReactNode => (
  <a href={`${OTHER_PAGE}${path}`}>{children}</a>
);

/** The address of a node's screen. */
export const nodePath = (id: string): string => `${OTHER_PAGE}nodes/${id}`;

export const NodeLink = ({ id, children }: NamedProps): ReactNode => (
  <a href={nodePath(id)}>{children ?? <code>{shortId(id)}</code>}</a>
);

export const OperationLink = ({ id, kind, children }: NamedProps & { readonly kind: string }): ReactNode => (
  <ToOtherPage path={`${kind === "onboarding" ? "onboardings" : "decommissions"}/${id}`}>
    {children ?? <code>{shortId(id)}</code>}
  </ToOtherPage>
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
