import { Button, Loader } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { HubError } from "../api/hub-error.ts";
import classes from "./parts.module.css";

/**
 * Why a place is empty. `none`: there are no such objects yet. `filtered`: there are objects, but the filter excludes all of them. `not_found`: the
 * search matches none. Each reason why a list is empty calls for another next step of the operator.
 */
type EmptyKind = "none" | "filtered" | "not_found" | "forbidden" | "failed";

interface EmptyProps {
  readonly title: string;
  readonly kind: EmptyKind;
  readonly children?: ReactNode;
}

export const Empty = ({ title, kind, children }: EmptyProps): ReactNode => (
  <div className={classes.empty} data-kind={kind}>
    <p className={classes.emptyTitle}>{title}</p>
    <div className={classes.emptyText}>{children}</div>
  </div>
);

export const Loading = ({ what }: { readonly what: string }): ReactNode => (
  <div className={classes.loading} role="status">
    <Loader size="xs" />
    <span>Loading {what}</span>
  </div>
);

/** Shows an error in the hub's words, which say what to do next, with the request's id, which is also in the hub's log. */
export function Failure({
  error,
  retry,
}: {
  readonly error: unknown;
  readonly retry?: (() => void) | undefined;
}): ReactNode {
  const known = error instanceof HubError ? error : null;
  return (
    <div className={classes.failure} role="alert">
      <p className={classes.emptyTitle}>{known?.title ?? "The console failed"}</p>
      <p>{known?.detail ?? String(error)}</p>
      {known === null || known.fields.length === 0 ? null : (
        <ul>
          {known.fields.map(({ pointer, message }) => (
            <li key={pointer}>
              <code>{pointer}</code> {message}
            </li>
          ))}
        </ul>
      )}
      <p className={classes.fine}>
        {known === null ? null : <code>{known.code}</code>}
        {known?.requestId === undefined ? null : (
          <>
            {" "}
            request <code>{known.requestId}</code>
          </>
        )}
      </p>
      {retry === undefined ? null : (
        <Button variant="default" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** Shows that the console waits for data which several requests return, or the error if a request failed. */
export const Awaited = ({
  what,
  error,
  retry,
}: {
  readonly what: string;
  readonly error: Error | null;
  readonly retry: () => void;
}): ReactNode => (error === null ? <Loading what={what} /> : <Failure error={error} retry={retry} />);

/**
 * Shows the answer of a query; before the answer is there, shows that the console waits, or the error. If a repeated query fails, the screen keeps
 * the answer that the query got before.
 */
export function Answered<Data>({
  query,
  what,
  children,
}: {
  readonly query: UseQueryResult<Data>;
  readonly what: string;
  readonly children: (data: Data) => ReactNode;
}): ReactNode {
  if (query.data !== undefined) return children(query.data);
  if (query.isError) return <Failure error={query.error} retry={() => void query.refetch()} />;
  return <Loading what={what} />;
}
