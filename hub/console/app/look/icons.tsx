import type { ReactNode } from "react";

const PATHS = {
  menu: "M2 4h12M2 8h12M2 12h12",
  find: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM11 11l3.5 3.5",
  close: "M4 4l8 8M12 4l-8 8",
  up: "M8 13V3M4 7l4-4 4 4",
  down: "M8 3v10M4 9l4 4 4-4",
  chevron: "M4 6l4 4 4-4",
  person: "M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 14a5.5 5.5 0 0 1 11 0",
  check: "M3 8.5l3.2 3.2L13 5",
  columns: "M2 3h12v10H2zM6 3v10M10 3v10",
  star: "M8 2l1.8 3.8 4.2.5-3.1 2.9.8 4.1L8 11.3l-3.7 2 .8-4.1L2 6.3l4.2-.5z",
  reload: "M13 8a5 5 0 1 1-1.5-3.6M13 2v3h-3",
  filter: "M2 3h12l-4.5 5.5V13l-3-1.5v-3z",
} as const;
export type IconName = keyof typeof PATHS;

/** A small drawing beside a text. An icon only repeats what its text says, so screen readers skip the icon. */
export const Icon = ({ name, size = 16 }: { readonly name: IconName; readonly size?: number }): ReactNode => (
  <svg
    aria-hidden="true"
    width={size}
    height={size}
    viewBox="0 0 16 16"
    fill="none"
    stroke="currentColor"
    strokeWidth={1.5}
    strokeLinecap="round"
    strokeLinejoin="round"
  >
    <path d={PATHS[name]} />
  </svg>
);
