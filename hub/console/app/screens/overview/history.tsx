import { SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { question, unannounced } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";
import { Section } from "../../parts/page-head.tsx";
import { Answered } from "../../parts/states.tsx";
import classes from "./overview.module.css";
import { overviewRoute, SPANS } from "./route.ts";
import { pointsOf, wordsOf } from "./trend.ts";

type Point = Answer<"getOverviewHistory">["points"][number];

const SPAN_TITLES: Readonly<Record<(typeof SPANS)[number], string>> = { 24: "1 day", 168: "1 week", 720: "30 days" };
const SIZE = { width: 240, height: 44 };

const SERIES: readonly { readonly title: string; readonly tone: string; readonly of: (point: Point) => number }[] = [
  { title: "Nodes that can take a tenant", tone: "good", of: ({ schedulable }) => schedulable },
  {
    title: "Nodes offline or quarantined",
    tone: "bad",
    of: ({ nodes }) => (nodes.offline ?? 0) + (nodes.quarantined ?? 0),
  },
  { title: "Operations that wait for a person", tone: "attention", of: ({ waiting }) => waiting },
];

const history = (hours: number) =>
  unannounced(
    question([], ["overview", "history", hours], (signal) =>
      read(api.GET("/api/v1/admin/overview/history", { params: { query: { hours } }, signal })),
    ),
  );

/** Shows how the numbers of nodes and operations changed in the last day, week or month. */
export function History(): ReactNode {
  const { hours = "24" } = overviewRoute.useSearch();
  const navigate = useNavigate({ from: "/" });
  const query = useQuery(history(Number(hours)));
  return (
    <Section
      title="Over time"
      aside={
        <SegmentedControl
          aria-label="How far back"
          data={SPANS.map((value) => ({ value, label: SPAN_TITLES[value] }))}
          value={hours}
          onChange={(value) =>
            void navigate({
              search: { hours: value === "24" ? undefined : (value as (typeof SPANS)[number]) },
              replace: true,
              resetScroll: false,
            })
          }
        />
      }
    >
      <Answered query={query} what="the history">
        {({ points }) =>
          points.length < 2 ? (
            <p className={classes.nothing}>
              The hub has counted its nodes only once so far. A line begins with the second time.
            </p>
          ) : (
            <div className={classes.trends}>
              {SERIES.map((one) => (
                <Trend key={one.title} {...one} points={points} />
              ))}
            </div>
          )
        }
      </Answered>
    </Section>
  );
}

function Trend({
  title,
  tone,
  of,
  points,
}: (typeof SERIES)[number] & { readonly points: readonly Point[] }): ReactNode {
  const samples = points.map((point) => ({ at: Date.parse(point.at), value: of(point) }));
  const line = pointsOf(samples, SIZE);
  const said = wordsOf(samples);
  return (
    <figure className={classes.trend} data-tone={tone}>
      <figcaption>
        {title}
        <span className={classes.fine}>{said}</span>
      </figcaption>
      <svg
        role="img"
        aria-label={`${title}: ${said}`}
        viewBox={`0 -2 ${SIZE.width} ${SIZE.height + 4}`}
        preserveAspectRatio="none"
      >
        <polyline points={line} />
      </svg>
    </figure>
  );
}
