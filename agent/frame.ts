import { HubFrame } from "../shared/protocol/frames.ts";

/**
 * Parses a frame, and returns null for a frame that this agent does not understand, for example from a newer hub. The agent ignores a frame that it
 * does not understand.
 */
export function frameOf(value: unknown): HubFrame | null {
  const parsed = HubFrame.safeParse(value);
  return parsed.success ? parsed.data : null;
}

export function parseFrame(text: string): HubFrame | null {
  try {
    return frameOf(JSON.parse(text));
  } catch {
    // The frame's text is not JSON, so the agent ignores it.
    return null;
  }
}
