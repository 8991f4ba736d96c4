import type { ReactNode } from "react";
import classes from "./facts.module.css";

/** A fact about an object: its name, and what the screen says. A fact that is `undefined` is left out. */
export type Fact = readonly [name: string, value: ReactNode];

/** The facts about one object, in as many columns as the window has room for. */
export const Facts = ({ facts }: { readonly facts: readonly Fact[] }): ReactNode => (
  <dl className={classes.facts}>
    {facts
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => (
        <div key={name} className={classes.fact}>
          <dt>{name}</dt>
          <dd>{value === null || value === "" ? "-" : value}</dd>
        </div>
      ))}
  </dl>
);
