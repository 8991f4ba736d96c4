import type { ReactNode } from "react";
import classes from "./facts.module.css";

/** A fact about an object: the fact's name, and the value that the screen shows. A fact whose value is `undefined` is not shown. */
export type Fact = readonly [name: string, value: ReactNode];

/** Shows the facts about one object, in as many columns as fit into the window. */
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
