import { lengthOf } from "../../parts/relative-words.ts";
import { words } from "../../parts/tones.ts";
import type { Segment } from "./operation-questions.ts";
import type { Bar, Row } from "./timeline-bars.ts";

/**
 * For each state of a timeline segment, such as `waiting`, its meaning and the letter on its bar, because not everybody sees colours and patterns.
 */
export const SEGMENTS: Readonly<Record<Segment["state"], { readonly letter: string; readonly meaning: string }>> = {
  working: { letter: "", meaning: "the hub or the host worked" },
  waiting: { letter: "w", meaning: "the stage waited for something else" },
  retrying: { letter: "r", meaning: "the stage had failed, and was tried again" },
  undoing: { letter: "u", meaning: "the hub undid what the stage had done" },
  stopped: { letter: "!", meaning: "the operation waited for a person" },
};
export const segmentStates = Object.keys(SEGMENTS) as readonly Segment["state"][];

/**
 * Formats the duration of a timeline's bar or of a stage. Durations below half a second are shown as `< 1 s`, because much of a hub's work is that
 * short.
 */
export const took = (seconds: number): string => (seconds < 0.5 ? "< 1 s" : lengthOf(seconds));

export const secondsOfBar = ({ from, to }: Bar): number => (to - from) / 1000;

export function barWords(bar: Bar): string {
  const { state, attempt, reason } = bar.segment;
  const tries = attempt > 1 ? `, attempt ${attempt}` : "";
  const goes = bar.isOpen ? ", goes on" : "";
  return `${words(state)} ${took(secondsOfBar(bar))}${goes}${tries}${reason === null ? "" : `: ${reason}`}`;
}

/** Describes the timeline's bars of one stage in one sentence. */
export function rowWords({ stage, bars, seconds }: Row): string {
  if (stage.state === "expected")
    return stage.usual === null ? "expected" : `expected, usually ${took(stage.usual.median_seconds)}`;
  return [`${words(stage.state)}, ${took(seconds)}`, ...bars.map(barWords)].join("; ");
}

export const usualWords = ({ stage: { usual } }: Row): string =>
  usual === null ? "" : `usually ${took(usual.median_seconds)}`;
