import type { ReactNode } from "react";
import classes from "./parts.module.css";
import { type Tone, toneOf, words } from "./tones.ts";

/** Each tone of a status badge also has a shape, because not everybody sees the colours. */
const SHAPES: Readonly<Record<Tone, string>> = {
  good: "M2 5.5l2.2 2.2L8.5 3",
  busy: "M5 1.8a3.2 3.2 0 1 1-3.2 3.2",
  attention: "M5 1.5l4 7H1zM5 4.2v2",
  bad: "M2.2 2.2l5.6 5.6M7.8 2.2l-5.6 5.6",
  over: "M2 5h6",
};

export const ToneMark = ({ tone }: { readonly tone: Tone }): ReactNode => (
  <svg
    aria-hidden="true"
    width={10}
    height={10}
    viewBox="0 0 10 10"
    fill="none"
    stroke="currentColor"
    strokeWidth={1.6}
    strokeLinecap="round"
    strokeLinejoin="round"
  >
    <path d={SHAPES[tone]} />
  </svg>
);

interface Props {
  /** The status as the API writes it. */
  readonly status: string;
  /** Sets the badge's tone where the status alone does not determine it. */
  readonly tone?: Tone;
  readonly children?: ReactNode;
}

export const StatusBadge = ({ status, tone = toneOf(status), children }: Props): ReactNode => (
  <span className={classes.badge} data-tone={tone}>
    <ToneMark tone={tone} />
    {children ?? words(status)}
  </span>
);
