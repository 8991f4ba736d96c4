import { useEffect, useState } from "react";

const TICK_MS = 1_000;

/**
 * The present time by the clock of an answer that contains its own time. While `runs`, the component is drawn again each second without a request, and
 * a hidden tab is not drawn.
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
