import type { ReactNode } from "react";

export interface Notice {
  readonly id: number;
  readonly tone: "good" | "attention" | "bad";
  readonly text: ReactNode;
}

const MOST = 5;
const GOOD_FOR_MS = 8_000;
let notices: readonly Notice[] = [];
let last = 0;
const listeners = new Set<() => void>();

const set = (next: readonly Notice[]): void => {
  notices = next;
  for (const tell of listeners) tell();
};

/** Shows a note at the edge of the screen. A note about a success disappears by itself; a person closes every other note. */
export function notify(notice: Omit<Notice, "id">): void {
  last += 1;
  const id = last;
  set([...notices, { ...notice, id }].slice(-MOST));
  if (notice.tone === "good") setTimeout(() => dismiss(id), GOOD_FOR_MS);
}

export const dismiss = (id: number): void => set(notices.filter((one) => one.id !== id));

export const noticeStore = {
  subscribe: (tell: () => void): (() => void) => {
    listeners.add(tell);
    return () => listeners.delete(tell);
  },
  now: (): readonly Notice[] => notices,
};
