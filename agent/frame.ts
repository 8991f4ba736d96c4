import { HubFrame } from "../shared/protocol/frames.ts";

/** Returns null for a frame that this agent does not know, for example from a newer hub. */
export function frameOf(value: unknown): HubFrame | null {
  const parsed = HubFrame.safeParse(value);
  return parsed.success ? parsed.data : null;
}

export function parseFrame(text: string): HubFrame | null {
  try {
    return frameOf(JSON.parse(text));
  } catch {
    // The agent ignores a frame whose text is not JSON.
    return null;
  }
}
