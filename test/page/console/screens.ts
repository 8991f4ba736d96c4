import type { Visit } from "../visit.ts";

interface ShownScreen {
  readonly name: string;
  /** The path below `/console`. */
  readonly path: string;
  /** Waits until the screen shows its data. */
  readonly ready: (visit: Visit) => Promise<unknown>;
}

/** Each screen of the console, with data in it. Every screen is opened by the tests for all readers. */
export const SHOWN: readonly ShownScreen[] = [
  {
    name: "Overview",
    path: "/",
    ready: ({ page }) => page.getByRole("region", { name: "By site and SKU", exact: true }).waitFor(),
  },
  { name: "Nodes", path: "/nodes", ready: ({ page }) => page.getByRole("row").nth(5).waitFor() },
];
