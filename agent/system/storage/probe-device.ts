import { type Probe, parseProbe } from "../../storage/disk-layout.ts";
import type { AttemptTool } from "../attempt.ts";

const ASK_TIMEOUT_MS = 60_000;

/** An empty answer means that `blkid` found nothing on the device that it knows. Null means that `blkid` cannot read the device. */
export async function probeDevice(
  path: string,
  attempt: AttemptTool,
  timeoutMs = ASK_TIMEOUT_MS,
): Promise<Probe | null> {
  const end = await attempt("blkid", ["-p", "-o", "export", path], { timeoutMs });
  if (end.kind !== "ended" || (end.exitCode !== 0 && end.exitCode !== 2)) return null;
  // `blkid` ends with status 2 for an empty device and for an unreadable one, but prints an error only for the unreadable one.
  return end.exitCode === 2 && end.stderr.trim() !== "" ? null : parseProbe(end.stdout);
}
