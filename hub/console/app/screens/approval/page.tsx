import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import { useSiteName } from "../../api/sites.ts";
import { type Fact, Facts } from "../../parts/facts.tsx";
import { NodeLink, OperationLink } from "../../parts/links.tsx";
import { PageHead, Section } from "../../parts/page-head.tsx";
import { absolute, RelativeTime } from "../../parts/relative-time.tsx";
import { Answered } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import { forgetAsked } from "../../verbs/asked-list.ts";
import { type Approval, carryOut, commandOf, mayCarryOut, subjectOf, withdraw } from "../../verbs/carry-out.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import { approvalRoute } from "./route.ts";

const approvalOf = (id: string) =>
  question([`approvals/${id}`, "approvals"], ["approval", id], (signal) =>
    read(api.GET("/api/v1/admin/approvals/{id}", { params: { path: { id } }, signal })),
  );

/** Shows one request that needs a second person's approval: what it does, its state, and what the reader may do with it. */
export function Page(): ReactNode {
  const { id } = approvalRoute.useParams();
  const query = useQuery(approvalOf(id));
  return (
    <Answered query={query} what="the request">
      {(one) => <Body one={one} />}
    </Answered>
  );
}

const nameOf = ({ id, requested_by: by }: Approval): string => `request ${id.slice(0, 8)} of ${by}`;
const isOpen = ({ state }: Approval): boolean => state === "pending" || state === "approved";

function Body({ one }: { readonly one: Approval }): ReactNode {
  const siteName = useSiteName();
  const subject = subjectOf(one);
  return (
    <>
      <PageHead
        title={nameOf(one).replace(/^r/, "R")}
        beside={<StatusBadge status={one.state} />}
        below={<Standing one={one} />}
        actions={<Verbs one={one} />}
      />
      <Section title="What the request does">
        <Facts
          facts={[
            ["Effect", one.does],
            [
              "A second person is asked for by",
              one.because.map(({ entry, profile }) => `${words(entry)} (profile ${profile})`).join(", "),
            ],
            [
              "About",
              subject === undefined ? undefined : subject.kind === "node" ? (
                <NodeLink key="node" id={subject.id}>
                  the node
                </NodeLink>
              ) : (
                <OperationLink key="operation" kind="decommission" id={subject.id}>
                  the decommission
                </OperationLink>
              ),
            ],
            ["Site", siteName(one.site_id)],
            ["Asked by", one.requested_by_you ? `${one.requested_by} (you)` : one.requested_by],
            ["Asked", <RelativeTime key="asked" at={one.requested_at} />],
            ["Expires", <RelativeTime key="expires" at={one.expires_at} />],
            ["Decided by", one.decided_by ?? undefined],
            ["Reason of the decision", one.decision_reason ?? undefined],
            ["Carried out", one.used_at === null ? undefined : <RelativeTime key="used" at={one.used_at} />],
          ]}
        />
      </Section>
      <Section title="The request itself">
        <Facts facts={[["Operation", <code key="operation">{one.operation}</code>], ...contentOf(one)]} />
      </Section>
      {one.state === "approved" && one.requested_by_you && !mayCarryOut(one) ? (
        <Section title="Carry it out">
          <p className="mono">{commandOf(one)}</p>
        </Section>
      ) : null}
    </>
  );
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

const contentOf = ({ params, body }: Approval): Fact[] =>
  Object.entries({ ...params, ...(isObject(body) ? body : {}) }).map(([name, value]) => [
    words(name),
    typeof value === "object" ? <code key={name}>{JSON.stringify(value)}</code> : String(value),
  ]);

function Standing({ one }: { readonly one: Approval }): ReactNode {
  const { state, decided_by: by, decision_reason: reason, expires_at: until, requested_by: asker } = one;
  const decided = by === null ? "" : ` by ${by}: ${reason}`;
  if (state === "pending") return `Waits for a second person until ${absolute(until)}.`;
  if (state === "approved")
    return `Approved${decided}. ${one.requested_by_you ? "You" : asker} can carry it out once until ${absolute(until)}.`;
  if (state === "used") return `Carried out; approved${decided}.`;
  if (state === "expired") return "Nobody carried it out in time.";
  return `The request was ${state}${decided}.`;
}

/** Returns why the reader cannot approve the request now; null if they can. */
const cannotGrant = (one: Approval): string | null => {
  if (!isOpen(one)) return `The request is ${one.state}.`;
  return one.requested_by_you ? "You asked for this request, so somebody else must approve it." : one.cannot_grant;
};

function Verbs({ one }: { readonly one: Approval }): ReactNode {
  const own = one.requested_by_you;
  return (
    <>
      {own && one.state === "approved" && mayCarryOut(one) ? <CarryOut one={one} /> : null}
      {own && one.state === "approved" ? null : <Approve one={one} />}
      {own ? <Withdraw one={one} /> : <Refuse one={one} />}
    </>
  );
}

type Part = { readonly one: Approval };
const changesOf = ({ id }: Approval): string[] => ["approvals", `approvals/${id}`];
const notOpen = (one: Approval): string | null => (isOpen(one) ? null : `The request is ${one.state}.`);

const CarryOut = ({ one }: Part): ReactNode => (
  <VerbButton
    verb="Carry out"
    what={nameOf(one)}
    effect={one.does}
    final
    asksReason={false}
    right="operate_nodes"
    changes={[...changesOf(one), "nodes", "operations", "batches", "sites"]}
    run={async () => {
      await carryOut(one);
      forgetAsked(one.id);
    }}
  />
);

const Approve = ({ one }: Part): ReactNode => (
  <VerbButton
    verb={one.state === "approved" ? "Approve again" : "Approve"}
    what={nameOf(one)}
    effect={`${one.requested_by} may do once: ${one.does}`}
    final
    right="operate_nodes"
    disabledBecause={cannotGrant(one)}
    changes={changesOf(one)}
    run={({ reason, headers }) =>
      read(
        api.POST("/api/v1/admin/approvals/{id}/grant", {
          params: { path: { id: one.id }, header: headers },
          body: { reason },
        }),
      )
    }
  />
);

const Withdraw = ({ one }: Part): ReactNode => (
  <VerbButton
    verb="Withdraw"
    what={nameOf(one)}
    effect="Nobody can carry the request out then."
    asksReason={false}
    right="operate_nodes"
    disabledBecause={notOpen(one)}
    changes={changesOf(one)}
    run={async () => {
      await withdraw(one.id);
      forgetAsked(one.id);
    }}
  />
);

const Refuse = ({ one }: Part): ReactNode => (
  <VerbButton
    verb="Refuse"
    what={nameOf(one)}
    effect={`Nobody can carry the request out then: ${one.does}`}
    right="operate_nodes"
    disabledBecause={notOpen(one)}
    changes={changesOf(one)}
    run={({ reason, headers }) =>
      read(
        api.POST("/api/v1/admin/approvals/{id}/refuse", {
          params: { path: { id: one.id }, header: headers },
          body: { reason },
        }),
      )
    }
  />
);
