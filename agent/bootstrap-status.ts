import { z } from "zod";
import type { ConditionOf, ReportedCondition } from "../shared/readiness.ts";
import { messageOf } from "./message-of.ts";
import type { System } from "./system/system.ts";

const FOLDER = "/var/lib/muster/bootstrap";
/** The folder where cloud-init stores the bootstrap parts (shell scripts of the user data) before it runs the first part. */
const SCRIPTS = "/var/lib/cloud/instance/scripts";
const SITES_OWN = "10-site-bootstrap";
/**
 * The systemd unit that runs each bootstrap part that has not succeeded yet, once after cloud-init and once at each boot. The unit `muster-bootstrap`
 * repeats the bootstrap part that installs the agent until that part succeeds.
 */
const UNIT = "muster-bootstrap.service";
const ASK_WITHIN_MS = 10_000;

/** The status file that each bootstrap part writes in the first boot (cloud-init/README.md). */
const PartStatus = z.object({
  part: z.string(),
  owner: z.enum(["site", "muster"]),
  ended_at: z.string().nullable(),
  exit_code: z.int().nullable(),
  message: z.string(),
});
type PartStatus = z.output<typeof PartStatus>;

/**
 * Reports the result of the first boot in two conditions: one for the site's own bootstrap part and one for Muster's parts (lifecycle 9). If the host
 * has no bootstrap part of the owner `site`, or none of the owner `muster`, that owner gets no condition. A bootstrap condition becomes `False` only
 * if nothing will retry the failed part, because the hub then ends the onboarding.
 */
export async function bootstrapConditions(system: System): Promise<ConditionOf<"agent">[]> {
  const names = (await system.list(FOLDER)).filter((name) => name.endsWith(".status"));
  const begun = await Promise.all(names.map((name) => readPart(system, name)));
  const parts = [...begun, ...(await notBegun(system, names))];
  const retried = parts.some(hasFailed) && (await isTriedAgain(system));
  return (["site", "muster"] as const).flatMap((owner) => {
    const own = parts.filter((part) => part.owner === owner);
    if (own.length === 0) return [];
    return [{ type: `bootstrap.${owner}`, ...verdict(own, retried), observed_at: new Date().toISOString() }];
  });
}

/**
 * One of several bootstrap parts starts the agent, so the agent runs before later parts have begun. After one bootstrap part has ended and before the
 * next one starts, no process of a bootstrap part runs.
 */
async function notBegun(system: System, statuses: readonly string[]): Promise<PartStatus[]> {
  const scripts = (await system.list(SCRIPTS))
    .flatMap((name) => /^([1-9]\d-.+)\.sh$/.exec(name)?.[1] ?? [])
    .filter((part) => !statuses.includes(`${part}.status`));
  // Scripts of other programs may have names like those of bootstrap parts, but only Muster's parts contain the path of the folder of status files.
  const texts = await Promise.all(scripts.map((part) => system.read(`${SCRIPTS}/${part}.sh`)));
  return scripts
    .filter((_part, at) => texts[at]?.includes("/var/lib/muster/bootstrap"))
    .map((part) => ({
      part,
      owner: part === SITES_OWN ? "site" : "muster",
      ended_at: null,
      exit_code: null,
      message: "it has not begun",
    }));
}

const hasFailed = (part: PartStatus): boolean => part.exit_code !== null && part.exit_code !== 0;

/**
 * Whether systemd may still run `muster-bootstrap` in this boot, in which case a failed bootstrap part may still succeed. If systemd does not answer,
 * no failure of a bootstrap part counts as final. On a host without systemd, for example in a test, nothing retries a failed bootstrap part.
 */
async function isTriedAgain(system: System): Promise<boolean> {
  if (system.root !== "/" && !(await system.isPresent("/usr/bin/systemctl"))) return false;
  try {
    const args = ["show", "--property=ActiveState", "--property=Job", UNIT];
    const { exitCode, stdout } = await system.run("systemctl", args, ASK_WITHIN_MS);
    return exitCode !== 0 || /^ActiveState=(?!inactive|failed)|^Job=[1-9]/m.test(stdout);
  } catch {
    return true;
  }
}

/**
 * A bootstrap part with an unreadable status file, for example after a power cut, counts as unfinished, because `muster-bootstrap` will repeat the
 * part.
 */
async function readPart(system: System, name: string): Promise<PartStatus> {
  const unreadable = (message: string): PartStatus => ({
    part: name.replace(/[.]status$/, ""),
    owner: "muster",
    ended_at: null,
    exit_code: null,
    message,
  });
  try {
    const parsed = PartStatus.safeParse(JSON.parse((await system.read(`${FOLDER}/${name}`)) ?? "null"));
    return parsed.success ? parsed.data : unreadable("its status file does not say how it ended");
  } catch (error) {
    return unreadable(`its status file cannot be read: ${messageOf(error)}`);
  }
}

function verdict(
  parts: readonly PartStatus[],
  retried: boolean,
): Pick<ReportedCondition, "status" | "reason" | "message"> {
  const failed = parts.filter(hasFailed);
  if (failed.length > 0) {
    const told = failed.map((part) => `${part.part} ended with ${part.exit_code}: ${part.message}`).join("; ");
    if (!retried) return { status: "False", reason: "PartFailed", message: told.slice(0, 1000) };
    return { status: "Unknown", reason: "TriedAgain", message: `${UNIT} tries again: ${told}`.slice(0, 1000) };
  }
  const running = parts.filter((part) => part.exit_code === null);
  if (running.length > 0) {
    const told = running.map((part) => `${part.part} has not ended: ${part.message}`);
    return { status: "Unknown", reason: "Running", message: told.join("; ").slice(0, 1000) };
  }
  return { status: "True", reason: "Completed", message: `${parts.length} of ${parts.length} parts succeeded` };
}
