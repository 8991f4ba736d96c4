/** A saved view is a name for the query part of a URL. The browser stores the saved views, because a URL query contains the whole state of the list. */
export interface SavedView {
  readonly name: string;
  readonly query: string;
}

const STORED = "muster-console-views-nodes";
const MOST = 50;
const MOST_NAME = 60;

const isView = (value: unknown): value is SavedView =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as SavedView).name === "string" &&
  typeof (value as SavedView).query === "string";

/** Reads the views from their stored form. Values in the browser's storage that are not saved views are ignored. */
export function parseViews(stored: string | null): SavedView[] {
  try {
    const value: unknown = JSON.parse(stored ?? "[]");
    return Array.isArray(value) ? value.filter(isView).slice(0, MOST) : [];
  } catch {
    return [];
  }
}

/** Adds a saved view, or replaces the saved view with the same name. */
export const withView = (views: readonly SavedView[], { name, query }: SavedView): SavedView[] => {
  const view = { name: name.trim().slice(0, MOST_NAME), query };
  if (view.name === "") return [...views];
  return [...views.filter((one) => one.name !== view.name), view]
    .sort((a, b) => a.name.localeCompare(b.name))
    .slice(0, MOST);
};

export const loadViews = (): SavedView[] => parseViews(localStorage.getItem(STORED));
export const storeViews = (views: readonly SavedView[]): void => localStorage.setItem(STORED, JSON.stringify(views));
