import { type Probe, parseProbe } from "../../storage/disk-layout.ts";
import type { AttemptTool } from "../attempt.ts";

const ASK_TIMEOUT_MS = 60_000;

/** Asks `blkid` what is on a device. An empty answer means that `blkid` knows nothing on the device. Null means that the device is not readable. */
export async function probeDevice(
  path: string,
  attempt: AttemptTool,
  timeoutMs = ASK_TIMEOUT_MS,
): Promise<Probe | null> {
  const end = await attempt("blkid", ["-p", "-o", "export", path], { timeoutMs });
  if (end.kind !== "ended" || (end.exitCode !== 0 && end.exitCode !== 2)) return null;
  // The status 2 also stands for a device that blkid cannot read, and blkid then says so.
  return end.exitCode === 2 && end.stderr.trim() !== "" ? null : parseProbe(end.stdout);
}
