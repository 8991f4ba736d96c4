import { HubFrame } from "../shared/protocol/frames.ts";

/** Null for a frame that this agent does not understand, e.g. of a newer hub: the agent ignores it and never stops because of it. */
export function frameOf(value: unknown): HubFrame | null {
  const parsed = HubFrame.safeParse(value);
  return parsed.success ? parsed.data : null;
}

export function parseFrame(text: string): HubFrame | null {
  try {
    return frameOf(JSON.parse(text));
  } catch {
    // Not JSON.
    return null;
  }
}
