import type { ReactNode } from "react";
import classes from "./note.module.css";
import { ToneMark } from "./status-badge.tsx";
import type { Tone } from "./tones.ts";

/** Shows a message about the screen's object that a person must not miss. */
export const Note = ({
  tone,
  title,
  children,
}: {
  readonly tone: Tone;
  readonly title: string;
  readonly children?: ReactNode;
}): ReactNode => (
  <div className={classes.note} data-tone={tone}>
    <p className={classes.title}>
      <ToneMark tone={tone} /> {title}
    </p>
    {children === undefined || children === null ? null : <div className={classes.text}>{children}</div>}
  </div>
);
