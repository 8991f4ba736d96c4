import { SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { useSiteName } from "../../api/sites.ts";
import { type Fact, Facts } from "../../parts/facts.tsx";
import { BatchLink, NodeLink, NodesLink } from "../../parts/links.tsx";
import { PageHead, Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { lengthOf } from "../../parts/relative-words.ts";
import { Answered } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import { FailureOf } from "./failure.tsx";
import { History } from "./history.tsx";
import classes from "./operation.module.css";
import { type Operation, operationOf, type Timeline, timelineOf } from "./operation-questions.ts";
import { isEnded, isFailed } from "./operation-verbs.ts";
import { operationRoute } from "./route.ts";
import { TimelineBars } from "./timeline.tsx";
import { drawingOf, goesOn } from "./timeline-bars.ts";
import { TimelineTable } from "./timeline-table.tsx";
import { useClock } from "./use-clock.ts";
import { Verbs } from "./verbs.tsx";

/** Shows one operation: how long each stage took, what it waits for, what failed, and what a person can do. */
export function Page(): ReactNode {
  const { id } = operationRoute.useParams();
  const query = useQuery(timelineOf(id));
  return (
    <Answered query={query} what="the operation">
      {(timeline) => <Body timeline={timeline} gotAt={query.dataUpdatedAt} />}
    </Answered>
  );
}

const titleOf = (kind: Timeline["kind"]): string => words(kind).replace(/^./, (letter) => letter.toUpperCase());

function Body({ timeline, gotAt }: { readonly timeline: Timeline; readonly gotAt: number }): ReactNode {
  const record = useQuery(operationOf(timeline.operation_id, timeline.kind));
  return (
    <>
      <PageHead
        title={`${titleOf(timeline.kind)} of ${timeline.hostname}`}
        beside={
          <>
            <StatusBadge status={timeline.status} />
            <NodeLink id={timeline.node_id}>Look at the node</NodeLink>
          </>
        }
        below={record.data === undefined ? null : <Standing record={record.data} />}
      />
      {record.data === undefined ? null : (
        <div className={classes.verbs}>
          <Verbs timeline={timeline} record={record.data} />
        </div>
      )}
      {record.data === undefined ? null : <FailureOf record={record.data} />}
      <Stages timeline={timeline} gotAt={gotAt} />
      <Answered query={record} what="the record">
        {(data) => (
          <>
            <Record timeline={timeline} record={data} />
            <History events={data.events} />
          </>
        )}
      </Answered>
    </>
  );
}

/** Says in one line what the operation does now. */
function Standing({ record }: { readonly record: Operation }): ReactNode {
  const attempt = record.current_attempt > 1 ? `, attempt ${record.current_attempt}` : "";
  return (
    <>
      {words(record.current_stage)}
      {attempt}
      {record.waiting_for === null ? null : `: waits for ${record.waiting_for}`}
      {record.stage_deadline === null || isEnded(record.status) || isFailed(record.status) ? null : (
        <>
          {" "}
          (deadline <RelativeTime at={record.stage_deadline} />)
        </>
      )}
      {record.pending_verb === null ? null : `. ${words(record.pending_verb)} takes effect after the present run.`}
    </>
  );
}

function Stages({ timeline, gotAt }: { readonly timeline: Timeline; readonly gotAt: number }): ReactNode {
  const { view, stage } = operationRoute.useSearch();
  const navigate = useNavigate({ from: "/operations/$id" });
  const now = useClock({ now: timeline.now, gotAt }, goesOn(timeline));
  const drawing = useMemo(() => drawingOf(timeline, now), [timeline, now]);
  return (
    <Section
      title="Stages"
      aside={
        <div className={classes.aside}>
          <span>
            {lengthOf((drawing.now - drawing.from) / 1000)} since the request
            {drawing.left === null ? null : `, usually ${lengthOf(drawing.left)} left`}
          </span>
          <SegmentedControl
            aria-label="View of the stages"
            data={[
              { value: "bars", label: "Bars" },
              { value: "table", label: "Table" },
            ]}
            value={view ?? "bars"}
            onChange={(value) =>
              void navigate({
                search: (before) => ({ ...before, view: value === "table" ? "table" : undefined }),
                replace: true,
                resetScroll: false,
              })
            }
          />
        </div>
      }
    >
      {view === "table" ? <TimelineTable drawing={drawing} /> : <TimelineBars drawing={drawing} open={stage} />}
      {timeline.cut ? <p className={classes.note}>The history is too long: its oldest events are left out.</p> : null}
    </Section>
  );
}

function Record({ timeline, record }: { readonly timeline: Timeline; readonly record: Operation }): ReactNode {
  const siteName = useSiteName();
  const facts: Fact[] = [
    ["Operation", <code key="id">{timeline.operation_id}</code>],
    ["Kind", words(timeline.kind)],
    [
      "Node",
      <NodeLink key="node" id={timeline.node_id}>
        {timeline.hostname}
      </NodeLink>,
    ],
    [
      "Site",
      timeline.site_id === null ? (
        "no site"
      ) : (
        <NodesLink key="site" search={{ site_id: timeline.site_id }}>
          {siteName(timeline.site_id)}
        </NodesLink>
      ),
    ],
    ["Machine in MAAS", record.maas_system_id === null ? "not bound" : <code key="maas">{record.maas_system_id}</code>],
    [
      "Batch",
      record.batch_id === null ? undefined : (
        <BatchLink
          key="batch"
          kind={timeline.kind === "onboarding" ? "onboarding" : "decommission"}
          id={record.batch_id}
        />
      ),
    ],
    ["Requested by", record.requested_by ?? "-"],
    ["Requested", <RelativeTime key="requested" at={record.requested_at} />],
    ["Began", <RelativeTime key="began" at={record.started_at} none="not yet" />],
    ["Ended", <RelativeTime key="ended" at={record.completed_at} none="not yet" />],
    ...("mode" in record ? decommissionFacts(record) : onboardingFacts(record)),
  ];
  return (
    <Section title="Record">
      <Facts facts={facts} />
    </Section>
  );
}

const decommissionFacts = (record: Extract<Operation, { mode: string }>): Fact[] => [
  ["Reason", record.reason],
  [
    "Forced",
    record.forced_at === null ? undefined : (
      <>
        <RelativeTime at={record.forced_at} /> by {record.forced_by}: {record.forced_reason}
      </>
    ),
  ],
];

const onboardingFacts = (record: Exclude<Operation, { mode: string }>): Fact[] => [
  ["SKU", record.sku_id],
  ["Profile", <code key="profile">{record.profile_id}</code>],
  ["BMC address", <code key="bmc">{record.ipmi_ip}</code>],
  ["PXE MAC", record.pxe_mac === null ? undefined : <code key="mac">{record.pxe_mac}</code>],
  [
    "Room / rack / unit",
    [record.location.room, record.location.rack, record.location.unit].filter((part) => part !== null).join(" / ") ||
      "-",
  ],
];
