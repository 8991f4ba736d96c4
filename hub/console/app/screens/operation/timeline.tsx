import { VisuallyHidden } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { type CSSProperties, type ReactNode, useMemo } from "react";
import { absolute } from "../../parts/relative-time.tsx";
import { lengthOf } from "../../parts/relative-words.ts";
import { words } from "../../parts/tones.ts";
import classes from "./operation.module.css";
import { StageDetails, StageState } from "./stage-details.tsx";
import type { Bar, Drawing, Row } from "./timeline-bars.ts";
import { type Scale, ticksOf } from "./timeline-scale.ts";
import { barWords, rowWords, SEGMENTS, segmentStates, took, usualWords } from "./timeline-words.ts";

/** The least distance between two marks of the timeline's axis, as a fraction of the axis. */
const APART = 0.11;
const percent = (share: number): string => `${(share * 100).toFixed(3)}%`;
const placeOf = (scale: Scale, { from, to }: { from: number; to: number }): CSSProperties => {
  const left = scale.at(from);
  return { left: percent(left), width: percent(Math.max(0, scale.at(to) - left)) };
};

/**
 * Draws the timeline of an operation: one row for each stage, and one bar for each time in which the stage worked, waited, retried or was undone. A
 * click on a stage's row in the timeline opens the details of the stage.
 */
export function TimelineBars({
  drawing,
  open,
}: {
  readonly drawing: Drawing;
  readonly open: string | undefined;
}): ReactNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by the keyboard
    <section className={classes.timeline} aria-label="Timeline of the stages" tabIndex={0}>
      <Axis drawing={drawing} />
      <ol className={classes.rows}>
        {drawing.rows.map((row) => (
          <StageRow key={row.stage.stage} row={row} drawing={drawing} open={open === row.stage.stage} />
        ))}
      </ol>
      <Legend />
    </section>
  );
}

function Axis({ drawing: { scale, from, left } }: { readonly drawing: Drawing }): ReactNode {
  const ticks = useMemo(() => ticksOf(scale, APART), [scale]);
  return (
    <div className={classes.axis} aria-hidden="true">
      <div className={classes.axisName}>Stage</div>
      <div className={classes.lane}>
        {scale.parts.map((part) =>
          part.kind === "time" ? null : (
            <span
              key={part.from}
              className={classes.axisPart}
              data-kind={part.kind}
              style={{ left: percent(part.start), width: percent(part.width) }}
            >
              {part.kind === "fold"
                ? `~ ${lengthOf((part.to - part.from) / 1000)}`
                : `usually ${lengthOf(left ?? 0)} more`}
            </span>
          ),
        )}
        {ticks
          .filter((tick) => isFree(scale, tick.at))
          .map(({ time, at }) => (
            <span key={time} className={classes.tick} style={{ left: percent(at) }}>
              {time === from ? "0" : lengthOf((time - from) / 1000)}
            </span>
          ))}
      </div>
      <div className={classes.took}>Took</div>
    </div>
  );
}

/** A mark of the axis is left out if its text would overlap the text of a shortened part or of the expected part. */
const isFree = ({ parts }: Scale, at: number): boolean =>
  !parts.some(({ kind, start, width }) => kind !== "time" && at > start - 0.06 && at < start + width);

function StageRow({ row, drawing, open }: { readonly row: Row; readonly drawing: Drawing; readonly open: boolean }) {
  const navigate = useNavigate({ from: "/operations/$id" });
  const { stage } = row;
  const toggle = (): void =>
    void navigate({
      search: (before) => ({ ...before, stage: open ? undefined : stage.stage }),
      replace: true,
      resetScroll: false,
    });
  return (
    <li data-state={stage.state} className={classes.row}>
      <button type="button" className={classes.rowButton} aria-expanded={open} onClick={toggle}>
        <VisuallyHidden data-words>
          {words(stage.stage)}: {rowWords(row)}
        </VisuallyHidden>
        <span className={classes.stage} aria-hidden="true">
          <StageState state={stage.state} />
          <span className={classes.stageName}>{words(stage.stage)}</span>
        </span>
        <Lane row={row} drawing={drawing} />
        <span className={classes.took} aria-hidden="true">
          {stage.state === "expected" ? "" : took(row.seconds)}
          <span className={classes.usual}>{usualWords(row)}</span>
        </span>
      </button>
      {open ? <StageDetails row={row} /> : null}
    </li>
  );
}

const Lane = ({
  row: { stage, bars, usual },
  drawing: { scale, now },
}: {
  readonly row: Row;
  readonly drawing: Drawing;
}): ReactNode => (
  <span className={classes.lane} aria-hidden="true">
    {scale.parts.map((part) =>
      part.kind === "time" ? null : (
        <span
          key={part.from}
          className={classes.part}
          data-kind={part.kind}
          style={{ left: percent(part.start), width: percent(part.width) }}
        />
      ),
    )}
    {bars.map((bar) => (
      <BarPiece key={`${bar.segment.began_at} ${bar.segment.state}`} bar={bar} scale={scale} />
    ))}
    {usual === null ? null : (
      <span
        className={classes.ghost}
        data-expected={stage.state === "expected"}
        style={placeOf(scale, usual)}
        title={`usually ${took((usual.to - usual.from) / 1000)}`}
      />
    )}
    {stage.deadline === null || Date.parse(stage.deadline) > (scale.parts.at(-1)?.to ?? now) ? null : (
      <span
        className={classes.flag}
        style={{ left: percent(scale.at(Date.parse(stage.deadline))) }}
        title={`deadline ${absolute(stage.deadline)}`}
      />
    )}
  </span>
);

const BarPiece = ({ bar, scale }: { readonly bar: Bar; readonly scale: Scale }): ReactNode => (
  <span
    className={classes.bar}
    data-segment={bar.segment.state}
    data-open={bar.isOpen}
    style={placeOf(scale, bar)}
    title={barWords(bar)}
  >
    <Letter state={bar.segment.state} />
  </span>
);

/** The letter on a bar of the timeline has a plain background, because a letter on a pattern is unreadable. */
const Letter = ({ state }: { readonly state: Bar["segment"]["state"] }): ReactNode =>
  SEGMENTS[state].letter === "" ? null : <span className={classes.letter}>{SEGMENTS[state].letter}</span>;

const Legend = (): ReactNode => (
  <ul className={classes.legend} aria-label="What the bars mean">
    {segmentStates.map((state) => (
      <li key={state}>
        <span className={classes.bar} data-segment={state} aria-hidden="true">
          <Letter state={state} />
        </span>
        {words(state)}: {SEGMENTS[state].meaning}
      </li>
    ))}
    <li>
      <span className={classes.ghost} aria-hidden="true" /> the usual length of the stage
    </li>
  </ul>
);
