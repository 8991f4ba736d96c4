import type { ReactNode } from "react";
import classes from "./tone-bar.module.css";
import { type Tone, words } from "./tones.ts";

export interface Share {
  readonly status: string;
  readonly count: number;
  readonly tone: Tone;
}

interface Props {
  readonly shares: readonly Share[];
  /**
   * The text that a screen reader reads in place of the bar. A bar without a label is hidden from screen readers, because visible text beside the bar
   * says the same as the bar.
   */
  readonly label?: string;
}

/** A bar that shows the share of each status. */
export const ToneBar = ({ shares, label }: Props): ReactNode => {
  const named = label === undefined ? { "aria-hidden": true } : { role: "img", "aria-label": label };
  return (
    <div className={classes.bar} {...named}>
      {shares.map(({ status, count, tone }) => (
        <span key={status} data-tone={tone} title={`${words(status)}: ${count}`} style={{ flexGrow: count }} />
      ))}
    </div>
  );
};
