import type { ReactNode } from "react";
import classes from "./parts.module.css";

interface Props {
  readonly title: ReactNode;
  /** What the head of the screen shows beside the title, for example the object's status. */
  readonly beside?: ReactNode;
  /** One line below the title. */
  readonly below?: ReactNode;
  /** The verbs of the screen. */
  readonly actions?: ReactNode;
}

export const PageHead = ({ title, beside, below, actions }: Props): ReactNode => (
  <div className={classes.head}>
    <div className={classes.headLine}>
      <h1 className={classes.title}>{title}</h1>
      {beside}
      <div className={classes.actions}>{actions}</div>
    </div>
    {below === undefined ? null : <div className={classes.below}>{below}</div>}
  </div>
);

/** A section of a screen with its own heading. */
export function Section({
  title,
  aside,
  children,
}: {
  readonly title: string;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <section className={classes.section} aria-label={title}>
      <div className={classes.sectionHead}>
        <h2 className={classes.sectionTitle}>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}
