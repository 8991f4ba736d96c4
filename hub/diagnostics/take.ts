import { z } from "zod";
import { Timestamp } from "../../shared/api/values.ts";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { isDatabaseAway } from "../db/away.ts";
import { StatementError } from "../db/drizzle.ts";
import { sql } from "../db/orm.ts";
import type { InTx } from "../db/tx.ts";
import { within } from "../timing/pause.ts";
import type { HubFacts } from "./facts.ts";
import { LeftOut, type Reading, type Section } from "./section.ts";
import { SECTIONS } from "./sections/index.ts";

/** `database_away`: it does not answer; the sections after it do not ask again. `too_slow`: it does, and time was up. `section_failed`: anything else. */
const SECTION_ERRORS = ["database_away", "too_slow", "section_failed"] as const;
const SectionError = z.strictObject({ code: z.enum(SECTION_ERRORS), detail: z.string() });
type SectionError = z.output<typeof SectionError>;

/** Of a section that could not be read, instead of what is in it. */
export const SectionFailed = z.strictObject({ took_ms: z.int(), error: SectionError });

const answerOf = ({ data, about }: Section) =>
  z.union([z.strictObject({ took_ms: z.int(), left_out: z.array(LeftOut), data }), SectionFailed]).describe(about);

/** What an operator hands to whoever helps. A higher `schema_version` may have lost or changed members; new ones alone raise nothing. */
export const Diagnostics = z.strictObject({
  schema_version: z.literal(1),
  taken_at: Timestamp,
  hub_id: z.string(),
  version: z.string(),
  sections: z.strictObject(Object.fromEntries(SECTIONS.map((section) => [section.name, answerOf(section)]))),
});
export type Diagnostics = z.output<typeof Diagnostics>;
type Answer = Diagnostics["sections"][string];

/** Milliseconds that reading may take. */
export interface Patience {
  /** By the server's own clock, so that no statement goes on for a reader who is gone. */
  readonly statement: number;
  readonly section: number;
  readonly all: number;
}
const PATIENCE: Patience = { statement: 5_000, section: 8_000, all: 30_000 };
const LONGEST_TEXT = 4_000;

/** One is taken at a time, and handed to whoever asks meanwhile: so however many ask, the database lends it one connection. */
export function diagnosticsOf(facts: HubFacts, inTx: InTx): (patience?: Patience) => Promise<Diagnostics> {
  let underWay: Promise<Diagnostics> | null = null;
  return (patience = PATIENCE) => {
    underWay ??= take(facts, inTx, patience).finally(() => {
      underWay = null;
    });
    return underWay;
  };
}

/** Reads the sections one after another, each failing alone: what is there is there. */
async function take(facts: HubFacts, inTx: InTx, patience: Patience): Promise<Diagnostics> {
  const takenAt = new Date().toISOString();
  const lastMoment = performance.now() + patience.all;
  const sections: Record<string, Answer> = {};
  let away: SectionError | null = null;
  for (const section of SECTIONS) {
    const began = performance.now();
    const ms = Math.min(patience.section, lastMoment - began);
    const found: Reading<unknown> | SectionError =
      away !== null && section.of === "database" ? away : await readWithin(ms, section, facts, inTx, patience);
    const took_ms = Math.round(performance.now() - began);
    if ("code" in found) sections[section.name] = { took_ms, error: presentable(found) };
    else sections[section.name] = { took_ms, left_out: [...(found.leftOut ?? [])], data: presentable(found.data) };
    if ("code" in found && found.code === "database_away") away = found;
  }
  const { hubId, version } = facts;
  return { schema_version: 1, taken_at: takenAt, hub_id: hubId, version, sections };
}

/** What a section reads, and whether anything has answered for it yet. */
interface Begun {
  readonly reading: Promise<Reading<unknown>>;
  readonly answers: () => boolean;
}

function begin(section: Section, facts: HubFacts, inTx: InTx, patience: Patience): Begun {
  if (section.of === "hub") return { reading: (async () => section.read(facts))(), answers: () => true };
  let answers = false;
  const reading = inTx(
    async (tx) => {
      await tx.execute(sql`select set_config('statement_timeout', ${String(patience.statement)}, true)`);
      answers = true;
      return section.read(tx);
    },
    { isolation: "repeatable read", readOnly: true },
  );
  return { reading, answers: () => answers };
}

async function readWithin(
  ms: number,
  section: Section,
  facts: HubFacts,
  inTx: InTx,
  patience: Patience,
): Promise<Reading<unknown> | SectionError> {
  if (ms <= 0) return { code: "too_slow", detail: "The sections before this one took all the time there was." };
  try {
    const { reading, answers } = begin(section, facts, inTx, patience);
    reading.catch(() => undefined);
    const found = await within(ms, reading);
    if (found !== null) return { ...found, data: section.data.parse(found.data) };
    const late = Math.round(ms);
    return answers()
      ? { code: "too_slow", detail: `It was not read within ${late} ms.` }
      : { code: "database_away", detail: `Nothing came within ${late} ms.` };
  } catch (error) {
    return errorOf(error);
  }
}

const STATEMENT_CANCELLED = "57014";
function errorOf(error: unknown): SectionError {
  const detail = error instanceof Error ? error.message : String(error);
  if (error instanceof StatementError && error.code === STATEMENT_CANCELLED) return { code: "too_slow", detail };
  return { code: isDatabaseAway(error) ? "database_away" : "section_failed", detail };
}

/** What stands under such a name is a secret, whatever it looks like. */
const SECRET_NAME =
  /(^|[_-])(secret|secret_id|password|passwd|pass|token|authorization|(consumer|access|api|private)_key)$/i;

/**
 * Every text without what has a credential's shape or name. What MAAS and hosts say was relieved of those when it came; this goes out of the house, and a
 * library's error that was logged was not.
 */
function presentable<T>(value: T, name = ""): T {
  if (typeof value === "string")
    return (SECRET_NAME.test(name) ? "[redacted]" : bounded(withoutCredentials(value))) as T;
  if (Array.isArray(value)) return value.map((one) => presentable(one, name)) as T;
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, presentable(member, key)])) as T;
}

const bounded = (text: string): string =>
  text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT)} ... (${text.length} characters)`;
