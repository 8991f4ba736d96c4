import { nearest } from "../../shared/nearest-name.ts";
import { UsageError } from "./errors.ts";

/** The settings that the command line reads from the environment. */
const SETTINGS = [
  "MUSTER_URL",
  "MUSTER_TOKEN",
  "MUSTER_TOKEN_FILE",
  "MUSTER_CA_FILE",
  "MUSTER_CONTEXT",
  "MUSTER_CONFIG",
  "MUSTER_SHARED_DIR",
  "MUSTER_STATE_DIR",
] as const;

/**
 * Refuses a name that is nearly the name of a setting of the command line, because the command would otherwise run with another token or hub than the
 * operator named. Every other name that begins with `MUSTER_` is accepted, because it may be a setting of a hub in the same shell, perhaps of a hub
 * newer than this program.
 */
export function refuseMistyped(env: Readonly<Record<string, string | undefined>>): void {
  const given = Object.keys(env).filter((name) => name.startsWith("MUSTER_") && !isSetting(name));
  const faults = given.toSorted().flatMap((name) => {
    const near = nearest(name, SETTINGS);
    return near === null ? [] : [`There is no setting ${name}. Did you mean ${near}?`];
  });
  if (faults.length > 0)
    throw new UsageError(`The settings of the command are not valid. ${faults.join(" ")} See docs/settings.md.`);
}

const isSetting = (name: string): boolean => (SETTINGS as readonly string[]).includes(name);
