import { styleText } from "node:util";
import { plain } from "../output/plain.ts";

type Item = Readonly<Record<string, unknown>>;

const isItem = (value: unknown): value is Item => value !== null && typeof value === "object" && !Array.isArray(value);

/** The field `a.b` is field b in the record a. `at` also finds a field whose own name has dots, such as the name of a node's condition. */
export function at(item: unknown, field: string): unknown {
  if (!isItem(item)) return undefined;
  if (field in item) return item[field];
  const [first = "", ...rest] = field.split(".");
  return rest.length === 0 ? undefined : at(item[first], rest.join("."));
}

/** A value as one line of text without control characters. */
export function cellOf(value: unknown): string {
  if (value === null || value === undefined || value === "") return "-";
  if (typeof value !== "object") return plain(String(value)).replaceAll("\n", " ");
  if (Array.isArray(value)) return value.length === 0 ? "-" : value.map(cellOf).join(", ");
  const parts = Object.entries(value).map(([name, one]) => `${name}=${cellOf(one)}`);
  return parts.length === 0 ? "-" : parts.join(" ");
}

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
] as const;

/** The time between two moments, in the largest unit that fits at least twice, for example `5m` or `50h`; a moment in the future gets a plus sign. */
export function ageOf(time: string, now: number): string {
  const seconds = Math.round((now - Date.parse(time)) / 1000);
  if (Number.isNaN(seconds)) return plain(time);
  const length = Math.abs(seconds);
  const [unit, size] = UNITS.find(([, of]) => length >= 2 * of) ?? ["s", 1];
  return `${seconds < 0 ? "+" : ""}${Math.floor(length / size)}${unit}`;
}

type Colour = "green" | "yellow" | "red" | "dim";
const MEANING: Readonly<Record<Colour, readonly string[]>> = {
  green: ["active", "completed", "reconciled", "succeeded", "clean", "ok", "True", "done", "approved"],
  yellow: [
    "pending",
    "running",
    "enrolling",
    "bootstrap_issued",
    "draining",
    "removing",
    "ending",
    "requested",
    "held",
  ],
  red: [
    "failed",
    "failed_retryable",
    "failed_manual_intervention",
    "quarantined",
    "offline",
    "found",
    "tripped",
    "False",
  ],
  dim: ["deleted", "retired", "cancelled", "ended", "disabled", "revoked", "expired", "-"],
};
const COLOURS = new Map(
  Object.entries(MEANING).flatMap(([colour, words]) => words.map((word) => [word, colour as Colour])),
);

/** Gives a word that names a state, such as `failed`, the colour of its meaning, and leaves every other text unchanged. */
export function coloured(text: string): string {
  const colour = COLOURS.get(text.trim());
  return colour === undefined ? text : styleText(colour, text, { validateStream: false });
}
