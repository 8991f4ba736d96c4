import { Button } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, useSyncExternalStore } from "react";
import { api, read } from "../api/client.ts";
import { question } from "../api/query-client.ts";
import classes from "../frame/frame.module.css";
import { notify } from "../frame/notice-list.ts";
import { ApprovalLink } from "../parts/links.tsx";
import { RelativeTime } from "../parts/relative-time.tsx";
import { type AskedRequest, askedStore, forgetAsked } from "./asked-list.ts";
import { type Approval, carryOut, mayCarryOut, withdraw } from "./carry-out.ts";

const approvalOf = (id: string) =>
  question([`approvals/${id}`, "approvals"], ["approval", id], (signal) =>
    read(api.GET("/api/v1/admin/approvals/{id}", { params: { path: { id } }, signal })),
  );

/** Shows on every screen the state of this tab's requests that need a second person's approval, so that the person can carry an approved request out. */
export function AskedApprovals(): ReactNode {
  const asked = useSyncExternalStore(askedStore.subscribe, askedStore.now);
  return (
    <div role="status">
      {asked.map((one) => (
        <AskedLine key={one.id} {...one} />
      ))}
    </div>
  );
}

function AskedLine({ id, what }: AskedRequest): ReactNode {
  const { data } = useQuery(approvalOf(id));
  const forget = (): void => forgetAsked(id);
  const report = (error: Error): void => notify({ tone: "bad", text: `${what}: ${error.message}` });
  const going = useMutation({
    mutationFn: carryOut,
    onSuccess: () => {
      notify({ tone: "good", text: `${what}: the hub has taken it.` });
      forget();
    },
    onError: report,
  });
  const withdrawing = useMutation({ mutationFn: () => withdraw(id), onSuccess: forget, onError: report });
  if (data === undefined) return null;
  const open = data.state === "pending" || data.state === "approved";
  return (
    <div className={classes.banner} data-tone={open ? "busy" : undefined}>
      <p>
        <strong>{what}</strong> needs a second person (<ApprovalLink id={id} />
        ): <Standing approval={data} />
      </p>
      <div className={classes.bannerActions}>
        {data.state === "approved" && mayCarryOut(data) ? (
          <Button loading={going.isPending} onClick={() => going.mutate(data)}>
            Carry out
          </Button>
        ) : null}
        {open ? (
          <Button variant="default" loading={withdrawing.isPending} onClick={() => withdrawing.mutate()}>
            Withdraw
          </Button>
        ) : (
          <Button variant="default" onClick={forget}>
            Close
          </Button>
        )}
      </div>
    </div>
  );
}

function Standing({ approval }: { readonly approval: Approval }): ReactNode {
  const { state, decided_by: by, decision_reason: reason, expires_at: until } = approval;
  if (state === "pending")
    return (
      <>
        it waits, and expires <RelativeTime at={until} />.
      </>
    );
  if (state === "approved")
    return (
      <>
        approved by {by} ({reason}). You can carry it out once.
      </>
    );
  if (state === "refused")
    return (
      <>
        refused by {by} ({reason}).
      </>
    );
  return <>{state}.</>;
}
