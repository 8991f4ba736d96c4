import { useEffect, useState } from "react";

const TICK_MS = 1_000;

/**
 * Returns the present time by the hub's clock, computed from an answer that contains the time at which the hub sent it. While `runs` is true, the
 * component renders again each second without a request, except in a hidden tab.
 */
export function useClock(answer: { readonly now: string; readonly gotAt: number }, runs: boolean): number {
  const [, setTicks] = useState(0);
  useEffect(() => {
    if (!runs) return undefined;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") setTicks((count) => count + 1);
    }, TICK_MS);
    return () => clearInterval(timer);
  }, [runs]);
  return Date.parse(answer.now) + Math.max(0, Date.now() - answer.gotAt);
}
