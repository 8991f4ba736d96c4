import type { ReactNode } from "react";

export const Mark = ({ size = 20 }: { readonly size?: number }): ReactNode => (
  <svg aria-hidden="true" width={size} height={size} viewBox="0 0 16 16">
    <rect width="16" height="16" rx="3" fill="var(--mantine-primary-color-filled)" />
    <path
      d="M3.5 12V4.5L8 9l4.5-4.5V12"
      fill="none"
      stroke="#fff"
      strokeWidth={1.8}
      strokeLinejoin="round"
      strokeLinecap="round"
    />
  </svg>
);
