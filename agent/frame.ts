import { HubFrame } from "../shared/protocol/frames.ts";

/** Returns null for a frame that this agent does not understand, for example from a newer hub. The agent ignores such a frame. */
export function frameOf(value: unknown): HubFrame | null {
  const parsed = HubFrame.safeParse(value);
  return parsed.success ? parsed.data : null;
}

export function parseFrame(text: string): HubFrame | null {
  try {
    return frameOf(JSON.parse(text));
  } catch {
    // The text is not JSON, so the agent ignores it.
    return null;
  }
}
