import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useMay } from "../api/session.ts";
import classes from "./frame.module.css";
import { GROUPS, type Screen } from "./screen.ts";
import { SCREENS } from "./screens.ts";

const ALL: readonly Screen[] = SCREENS;

/** The screens that the person may see, by their groups. */
export function Navigation(): ReactNode {
  const may = useMay();
  return GROUPS.map((group) => {
    const entries = ALL.filter((one) => one.group === group && may(one.right));
    if (entries.length === 0) return null;
    return (
      <div key={group}>
        <h2 className={classes.group}>{group}</h2>
        <ul className={classes.entries}>
          {entries.map(({ route, title }) => (
            <li key={route.path}>
              <Link
                to={route.path as "/"}
                className={classes.entry}
                activeOptions={{ exact: route.path === "/", includeSearch: false }}
              >
                {title}
              </Link>
            </li>
          ))}
        </ul>
      </div>
    );
  });
}
