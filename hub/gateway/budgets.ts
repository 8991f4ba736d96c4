import { MAX_FRAME_BYTES } from "../../shared/protocol/version.ts";

/**
 * Largest body of each route of the agent listener, in bytes. A real enrollment has 1.3 KB, with 256 NICs 6.4 KB; its fields at their bounds
 * have 14.5 KB. A hello with a full journal has 93 KB. The others take no body.
 */
export const BODY_BYTES = {
  enroll: 16 * 1024,
  renewal: 16 * 1024,
  session: 128 * 1024,
  frames: MAX_FRAME_BYTES,
  /** All of a host's public keys are a few kilobytes. */
  cloudInitReport: 64 * 1024,
} as const;
