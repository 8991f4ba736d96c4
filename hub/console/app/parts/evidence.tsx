import type { ReactNode } from "react";
import classes from "./evidence.module.css";
import { type Fact, Facts } from "./facts.tsx";
import { words } from "./tones.ts";

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Shows any JSON value, for example the evidence of a failure, as names and texts. */
export function Evidence({ value }: { readonly value: unknown }): ReactNode {
  if (value === null || value === undefined || value === "") return <>-</>;
  if (Array.isArray(value)) {
    if (value.length === 0) return <>none</>;
    if (value.every((one) => typeof one !== "object")) return <>{value.map(String).join(", ")}</>;
    return (
      <ol className={classes.list}>
        {value.map((one, n) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: entries of foreign evidence have no name of their own
          <li key={n}>
            <Evidence value={one} />
          </li>
        ))}
      </ol>
    );
  }
  if (isObject(value))
    return (
      <div className={classes.inner}>
        <Facts
          facts={Object.entries(value).map(([name, one]): Fact => [words(name), <Evidence key={name} value={one} />])}
        />
      </div>
    );
  return <span className={classes.text}>{String(value)}</span>;
}
