import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useMay } from "../../api/session.ts";
import { useSiteName, useSites } from "../../api/sites.ts";
import { Facts } from "../../parts/facts.tsx";
import { AllocationLink, NodeLink, RepairLink } from "../../parts/links.tsx";
import { Note } from "../../parts/note.tsx";
import { PageHead, Section } from "../../parts/page-head.tsx";
import { RelativeTime, useNow } from "../../parts/relative-time.tsx";
import { Answered } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { counted, words } from "../../parts/tones.ts";
import { attemptsOf, recentOf, WINDOW_DAYS } from "./attempts.ts";
import { expectedOf, RISKS } from "./expected.ts";
import { Machine } from "./machine.tsx";
import classes from "./repair.module.css";
import { type Repair, repairsOfNode, useRepair } from "./repair-questions.ts";
import { repairRoute } from "./route.ts";
import { Attempts, Timeline } from "./timeline.tsx";
import { RepairVerbs } from "./verbs.tsx";

/** Shows one repair case: what is wrong, who repairs the machine, the expected next step, and the case's history. */
export function Page(): ReactNode {
  const { id } = repairRoute.useParams();
  const query = useRepair(id);
  return (
    <Answered query={query} what="the repair">
      {(one) => <Body key={one.id} one={one} />}
    </Answered>
  );
}

type Part = { readonly one: Repair };

function Body({ one }: Part): ReactNode {
  const attempts = attemptsOf(one.timeline);
  return (
    <>
      <PageHead
        title={`Repair of ${one.hostname}`}
        beside={<StatusBadge status={one.state} />}
        below={
          <>
            {one.mode === "online" ? "online repair: the tenant keeps the machine" : "full repair"},{" "}
            <code>{one.id}</code>
          </>
        }
        actions={<RepairVerbs one={one} />}
      />
      <Next one={one} />
      <Fault one={one} />
      {one.machine ? <Machine machine={one.machine} /> : null}
      <Lease one={one} recent={recentOf(attempts, useNow())} />
      <Acknowledged one={one} />
      <Attempts attempts={attempts} />
      <Timeline timeline={one.timeline} />
      <Others one={one} />
    </>
  );
}

/** What is expected next. For a machine that was reported as repaired, the section lists the checks that the machine has not passed. */
function Next({ one }: Part): ReactNode {
  const expected = expectedOf(one);
  if (expected === null) return null;
  return (
    <Note tone={expected.tone} title={expected.title}>
      {expected.next}
      {one.failed_checks.length === 0 ? null : (
        <ul className={classes.list} aria-label="Checks that the machine has not passed">
          {one.failed_checks.map(({ code, message, next_action: next }) => (
            <li key={`${code} ${message}`}>
              {message}: {next}
            </li>
          ))}
        </ul>
      )}
    </Note>
  );
}

function Fault({ one }: Part): ReactNode {
  const siteName = useSiteName();
  const may = useMay();
  return (
    <Section title="The fault">
      <Facts
        facts={[
          ["Kind", one.issue.category],
          ["What is wrong", one.issue.summary],
          ["Details", one.issue.details ?? undefined],
          ["What the last attempt left", one.finding === null || one.finding === "" ? undefined : one.finding],
          [
            "Node",
            may("read_nodes") ? (
              <NodeLink key="node" id={one.node_id}>
                {one.hostname}
              </NodeLink>
            ) : (
              one.hostname
            ),
          ],
          ["Site", siteName(one.site_id)],
          [
            "Opened",
            <>
              <RelativeTime at={one.opened_at} /> by {one.opened_by}
            </>,
          ],
          [
            "Tenant with the fault",
            one.tenant === null ? undefined : one.allocation_id === null ? (
              one.tenant
            ) : (
              <AllocationLink key="tenant" id={one.allocation_id}>
                {one.tenant}
              </AllocationLink>
            ),
          ],
          ["Cleaned after the tenant", one.tenant === null || one.mode === "online" ? undefined : words(one.sanitized)],
          ["In its state since", <RelativeTime key="since" at={one.state_since} />],
          ["Ended", one.ended_at === null ? undefined : <RelativeTime key="ended" at={one.ended_at} />],
        ]}
      />
    </Section>
  );
}

/** Shows who has claimed the machine's repair until when, and how many repair attempts the machine has left. */
function Lease({ one, recent }: Part & { readonly recent: number }): ReactNode {
  const limit = useSites().get(one.site_id ?? "")?.repair_attempt_limit;
  return (
    <Section title="Claim and attempts">
      <Facts
        facts={[
          ["Claimed by", one.state === "claimed" ? (one.claimed_by ?? "-") : "nobody"],
          ["Repair team", one.repair_tenant ?? undefined],
          ["Claim ends", one.claim_until === null ? undefined : <RelativeTime key="until" at={one.claim_until} />],
          [
            "Account on the host",
            one.access_allocation_id === null ? undefined : (
              <AllocationLink key="access" id={one.access_allocation_id} />
            ),
          ],
          ["Attempts of this repair", String(one.attempt)],
          [`Of them in the last ${WINDOW_DAYS} days`, String(recent)],
          [
            `Allowed for a machine in ${WINDOW_DAYS} days`,
            limit === undefined ? undefined : `${counted(limit, "attempt")}, over all its repairs`,
          ],
          ["Last outcome", one.outcome === null ? undefined : words(one.outcome)],
          [
            "Validated",
            one.validated_at === null ? undefined : (
              <>
                <RelativeTime at={one.validated_at} /> by {one.validated_by}
              </>
            ),
          ],
        ]}
      />
    </Section>
  );
}

/** Shows which risks of an online repair the tenant has accepted, according to the request for the repair. */
function Acknowledged({ one }: Part): ReactNode {
  const opened = one.timeline.find(({ entry }) => entry === "opened");
  const accepted = opened?.details["acknowledgements"];
  if (opened === undefined || typeof accepted !== "object" || accepted === null) return null;
  const risks = Object.entries(accepted).flatMap(([risk, yes]) => (yes === true ? [RISKS[risk] ?? words(risk)] : []));
  return (
    <Section title="What the tenant has accepted">
      <ul>
        {risks.map((risk) => (
          <li key={risk}>{risk}</li>
        ))}
        <li>
          {one.release_on_failure
            ? "the hub releases the allocation by itself if the repair fails"
            : "the tenant keeps the machine if the repair fails"}
        </li>
      </ul>
    </Section>
  );
}

/** Lists the other repairs of the same machine, whose attempts also count towards the machine's limit. */
function Others({ one }: Part): ReactNode {
  const { data } = useQuery(repairsOfNode(one.node_id));
  const others = (data?.items ?? []).filter(({ id }) => id !== one.id);
  if (others.length === 0) return null;
  return (
    <Section title="Other repairs of the machine">
      <ul>
        {others.map(({ id, state, issue, opened_at: at, attempt }) => (
          <li key={id}>
            <RepairLink id={id}>{issue.summary}</RepairLink> <StatusBadge status={state} />, opened{" "}
            <RelativeTime at={at} />, {counted(attempt, "attempt")}
          </li>
        ))}
      </ul>
    </Section>
  );
}
