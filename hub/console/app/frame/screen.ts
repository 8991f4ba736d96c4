import type { AnyRoute } from "@tanstack/react-router";
import type { ComponentType } from "react";
import type { Right } from "../api/session.ts";

/** The groups of the navigation. A screen without a group is no entry of the navigation, for example the screen of one node. */
export const GROUPS = ["Fleet", "Records", "Settings"] as const;

export interface ScreenAbout {
  readonly title: string;
  /**
   * The right that the screen needs. A person without the right `right` sees only a note that the right is missing, and the navigation does not list
   * the screen.
   */
  readonly right: Right | "none";
  readonly group?: (typeof GROUPS)[number];
  /** The key that opens the screen if a person presses it after `g`. */
  readonly key?: string;
  /** Loads the code of the screen, which exports the component `Page`. */
  readonly load: () => Promise<{ readonly Page: ComponentType }>;
}

export interface Screen<R extends AnyRoute = AnyRoute> extends ScreenAbout {
  readonly route: R;
}

export const screen = <R extends AnyRoute>(route: R, about: ScreenAbout): Screen<R> => ({ route, ...about });
