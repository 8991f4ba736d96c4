/**
 * Returns the shape of a value: the keys and value types at every level. The shape of a list is the set of its elements' shapes, so that lists of
 * different lengths are comparable.
 */
function shapeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return `[${[...new Set(value.map(shapeOf))].toSorted().join(" | ")}]`;
  if (typeof value === "object") {
    const keys = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return `{${keys.map(([key, one]) => `${key}: ${shapeOf(one)}`).join(", ")}}`;
  }
  return typeof value;
}

/**
 * The fields of MAAS objects whose value is an object with keys that a user chooses. The comparison of shapes treats keys that a user chooses as
 * values.
 */
const OPEN_MAPS: readonly string[] = ["owner_data", "workload_annotations"];

/** Fields of MAAS's answers that the recorder may have dropped, so their absence from a recording is no difference. */
const DROPPED_BY_RECORDINGS: readonly string[] = ["ip_addresses"];

export function asRecorded(recorded: unknown, simulated: unknown): unknown {
  const text = JSON.stringify(recorded);
  const dropped = DROPPED_BY_RECORDINGS.filter((name) => !text.includes(`"${name}"`));
  return JSON.parse(JSON.stringify(simulated, (key, value: unknown) => (dropped.includes(key) ? undefined : value)));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function shapeDifferences(recorded: unknown, simulated: unknown, at = ""): string[] {
  if (shapeOf(recorded) === shapeOf(simulated)) return [];
  if (Array.isArray(recorded) && Array.isArray(simulated)) return listDifferences(recorded, simulated, at);
  if (isObject(recorded) && isObject(simulated)) {
    if (OPEN_MAPS.some((name) => at.endsWith(`.${name}`))) return [];
    const keys = [...new Set([...Object.keys(recorded), ...Object.keys(simulated)])].toSorted();
    return keys.flatMap((key) => {
      if (!(key in recorded)) return [`${at}.${key}: not in the recording`];
      if (!(key in simulated)) return [`${at}.${key}: missing in the simulator`];
      return shapeDifferences(recorded[key], simulated[key], `${at}.${key}`);
    });
  }
  return [`${at}: recorded ${brief(recorded)}, simulated ${brief(simulated)}`];
}

function listDifferences(recorded: readonly unknown[], simulated: readonly unknown[], at: string): string[] {
  if (recorded.length === simulated.length)
    return recorded.flatMap((one, index) => shapeDifferences(one, simulated[index], `${at}[${index}]`));
  const [left, right] = [new Set(recorded.map(shapeOf)), new Set(simulated.map(shapeOf))];
  if (left.size === right.size && [...left].every((shape) => right.has(shape))) return [];
  if (recorded.length === 0 || simulated.length === 0)
    return [`${at}: recorded ${recorded.length} elements, simulated ${simulated.length}`];
  return shapeDifferences(recorded[0], simulated[0], `${at}[of ${recorded.length}/${simulated.length}]`).concat(
    `${at}: element shapes differ`,
  );
}

function brief(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 60) ?? "nothing";
}

/** Fields of a machine that MAAS's state machine decides, and whose recorded and simulated values must be equal. */
const DECIDED = [
  "status",
  "status_name",
  "owner",
  "locked",
  "osystem",
  "distro_series",
  "hostname",
  "power_type",
  "status_action",
] as const;

export function decisionDifferences(recorded: unknown, simulated: unknown): string[] {
  if (
    !isObject(recorded) ||
    !isObject(simulated) ||
    recorded["status_name"] === undefined ||
    recorded["hostname"] === undefined
  )
    return [];
  return DECIDED.filter((key) => recorded[key] !== simulated[key]).map(
    (key) => `.${key}: recorded ${brief(recorded[key])}, simulated ${brief(simulated[key])}`,
  );
}

/** Returns an error text of MAAS with a sorted list of choices, because MAAS lists the choices in a random order. */
export function comparableError(text: string): string {
  return text.replace(
    /It should be one of: ('[^']*'(?:, '[^']*')*)/g,
    (_, choices: string) => `It should be one of: ${choices.split(", ").toSorted().join(", ")}`,
  );
}
