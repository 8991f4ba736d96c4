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

/**
 * The errors of a section of the diagnostics. `database_away`: the database does not answer, so the hub does not query the database for later
 * sections. `too_slow`: the database answers, but the hub could not read the section of the diagnostics in time. `section_failed`: the hub could not
 * read the section of the diagnostics for another reason than `database_away` and `too_slow`.
 */
const SECTION_ERRORS = ["database_away", "too_slow", "section_failed"] as const;
const SectionError = z.strictObject({ code: z.enum(SECTION_ERRORS), detail: z.string() });
type SectionError = z.output<typeof SectionError>;

export const SectionFailed = z.strictObject({ took_ms: z.int(), error: SectionError });

const answerOf = ({ data, about }: Section) =>
  z.union([z.strictObject({ took_ms: z.int(), left_out: z.array(LeftOut), data }), SectionFailed]).describe(about);

/**
 * The diagnostics document, which an operator gives to a supporter. A higher `schema_version` means that fields of the diagnostics document were
 * removed or changed; new fields alone do not raise `schema_version`.
 */
export const Diagnostics = z.strictObject({
  schema_version: z.literal(1),
  taken_at: Timestamp,
  hub_id: z.string(),
  version: z.string(),
  sections: z.strictObject(Object.fromEntries(SECTIONS.map((section) => [section.name, answerOf(section)]))),
});
export type Diagnostics = z.output<typeof Diagnostics>;
type Answer = Diagnostics["sections"][string];

/** The time limits for reading the diagnostics, in milliseconds. */
export interface Patience {
  /** PostgreSQL's own time limit for each statement, so that no statement continues after the hub has stopped to wait. */
  readonly statement: number;
  readonly section: number;
  readonly all: number;
}
const PATIENCE: Patience = { statement: 5_000, section: 8_000, all: 30_000 };
const LONGEST_TEXT = 4_000;

/**
 * Takes one diagnostics document at a time. A request that arrives while the hub takes a diagnostics document gets that document, so simultaneous
 * requests use only one database connection.
 */
export function diagnosticsOf(facts: HubFacts, inTx: InTx): (patience?: Patience) => Promise<Diagnostics> {
  let underWay: Promise<Diagnostics> | null = null;
  return (patience = PATIENCE) => {
    underWay ??= take(facts, inTx, patience).finally(() => {
      underWay = null;
    });
    return underWay;
  };
}

/** If one section of the diagnostics fails, `take` still reads the next sections. */
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

/** A section of the diagnostics that the hub has begun to read, and whether the database has answered yet. */
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
  if (ms <= 0) return { code: "too_slow", detail: "The earlier sections used up the time for the whole document." };
  try {
    const { reading, answers } = begin(section, facts, inTx, patience);
    reading.catch(() => undefined);
    const found = await within(ms, reading);
    if (found !== null) return { ...found, data: section.data.parse(found.data) };
    const late = Math.round(ms);
    return answers()
      ? { code: "too_slow", detail: `The section could not be read within ${late} ms.` }
      : { code: "database_away", detail: `The database did not answer within ${late} ms.` };
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

/** Matches the names of fields in the diagnostics whose values are secrets, whatever the values look like. */
const SECRET_NAME =
  /(^|[_-])(secret|secret_id|password|passwd|pass|token|authorization|(consumer|access|api|private)_key)$/i;

/**
 * Removes every value from the diagnostics that looks like a credential, or whose field has the name of a credential. The hub removes credentials
 * from texts of MAAS and hosts when they arrive, but a library's logged error may still contain a credential. The diagnostics must contain no
 * credential, because operators give the diagnostics to other people.
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
