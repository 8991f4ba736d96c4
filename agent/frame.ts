import { HubFrame } from "../shared/protocol/frames.ts";

/** Null for whatever this agent does not understand, e.g. a frame of a newer hub: it is ignored and never a reason to stop. */
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
