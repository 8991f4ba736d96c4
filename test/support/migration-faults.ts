/** What a migration takes away from the hubs of the previous version, which work on beside the hub that has migrated the database. */

const TAKES_AWAY: readonly (readonly [string, RegExp])[] = [
  ["a table or view is dropped", /^drop (table|view|schema|type|sequence)\b/],
  ["a column is dropped", /^alter table .* drop column\b/],
  ["something is renamed", /^alter .* rename\b/],
  ["a column gets another type", /^alter table .* alter column .* (set data )?type\b/],
  ["a column must not be null any more", /^alter table .* alter column .* set not null\b/],
  ["a column loses its default", /^alter table .* alter column .* drop default\b/],
  [
    "a new column has no value for the rows of older hubs",
    /^alter table .* add column (?!.*\bdefault\b).*\bnot null\b/,
  ],
];

const DROPPED = /^alter table (\S+) drop constraint (?:if exists )?(\S+?);?$/;
const DROPPED_INDEX = /^drop index (?:if exists )?(\S+?);?$/;
const ADDED = /^alter table (\S+) add constraint (\S+) (.*?);?$/;
const CHECK = /^check \((.*)\)$/;
const UNIQUE = /^unique ?(nulls not distinct ?)?\((.*)\)$/;
const UNIQUE_INDEX =
  /^create unique index (\S+) on (\S+) using btree \((.*?)\)(?: (nulls not distinct))?(?: where .*)?;?$/;
const FOREIGN_KEY = /^foreign key \((.*?)\) references /;
const NEW_TABLE = /^create table (\S+) \(/;
const NEW_COLUMN = /^alter table (\S+) add column (\S+) (.*?);?$/;
const CHECK_OF_NEW_TABLE = /constraint (\S+) check \((.*?)\)(?=, constraint | ?\);?$)/g;

/** Returns the statements without comments, line breaks and capitals. */
const plainSql = (statements: readonly string[]): string[] =>
  statements.map((statement) =>
    statement
      .replaceAll(/^\s*--.*$/gm, "")
      .replaceAll(/\s+/g, " ")
      .trim()
      .toLowerCase(),
  );

/** The rules of a schema that a later migration may narrow: the condition of each check by its table and name, and the names of the unique indexes. */
interface SchemaRules {
  readonly checks: ReadonlyMap<string, string>;
  readonly uniqueIndexes: ReadonlySet<string>;
}

/** Returns the rules of the schema after all these statements. */
export function rulesAfter(statements: readonly string[]): SchemaRules {
  const checks = new Map<string, string>();
  const uniqueIndexes = new Set<string>();
  for (const statement of plainSql(statements)) {
    const [, table = ""] = NEW_TABLE.exec(statement) ?? [];
    if (table !== "")
      for (const [, name, condition = ""] of statement.matchAll(CHECK_OF_NEW_TABLE))
        checks.set(`${table}.${name}`, condition);
    const [, of, added, body = ""] = ADDED.exec(statement) ?? [];
    const [, condition] = CHECK.exec(body) ?? [];
    if (condition !== undefined) checks.set(`${of}.${added}`, condition);
    const [, index] = UNIQUE_INDEX.exec(statement) ?? [];
    if (index !== undefined) uniqueIndexes.add(index);
  }
  return { checks, uniqueIndexes };
}

/** A fault of a migration; `rule` names the table and the check, if the fault is a check. */
interface Fault {
  readonly fault: string;
  readonly rule?: string;
}

/** The tables and columns of one migration, into which an older hub writes nothing of its own. */
interface New {
  readonly tables: ReadonlySet<string>;
  readonly columns: ReadonlySet<string>;
  /** The new columns that are null in each row of an older hub. */
  readonly empty: ReadonlySet<string>;
}

function newOf(plain: readonly string[]): New {
  const columns = plain.flatMap((statement) => {
    const [, table, column, type = ""] = NEW_COLUMN.exec(statement) ?? [];
    return table === undefined ? [] : [{ name: `${table}.${column}`, isEmpty: !/\b(default|generated)\b/.test(type) }];
  });
  return {
    tables: new Set(plain.flatMap((statement) => NEW_TABLE.exec(statement)?.[1] ?? [])),
    columns: new Set(columns.map(({ name }) => name)),
    empty: new Set(columns.filter(({ isEmpty }) => isEmpty).map(({ name }) => name)),
  };
}

const columnsIn = (table: string, text: string): string[] =>
  [...text.matchAll(/"[^"]+"/g)].map(([column]) => `${table}.${column}`);

/** A unique index refuses no row with a null in one of its columns, so it refuses no row of an older hub if one of its columns is new and empty. */
const mayRefuseRow = (table: string, columns: string, { tables, empty }: New): boolean =>
  !tables.has(table) && !columns.split(",").some((column) => empty.has(`${table}.${column.trim()}`));

const VALUES = /^("[^"]+") in \((.*)\)$/;

/** True if each row that the older check allows is allowed by the newer one too, as far as their texts show it. */
function isAsWide(older: string | undefined, newer: string): boolean {
  if (older === undefined || older === newer) return older === newer;
  const [, column, values] = VALUES.exec(older) ?? [];
  const [, sameColumn, more = ""] = VALUES.exec(newer) ?? [];
  const wider = new Set(more.split(", "));
  return values !== undefined && column === sameColumn && values.split(", ").every((value) => wider.has(value));
}

/** Returns what makes the database refuse a row that an older hub writes. */
function narrowerRules(statement: string, fresh: New, before: SchemaRules): Fault[] {
  if (statement.startsWith("create unique index ")) {
    const [, , of = "", indexed = "", isStrict] = UNIQUE_INDEX.exec(statement) ?? [];
    return isStrict !== undefined || mayRefuseRow(of, indexed, fresh)
      ? [{ fault: `a unique index is on an older table: ${statement}` }]
      : [];
  }
  const [, table = "", name, body = ""] = ADDED.exec(statement) ?? [];
  if (name === undefined || fresh.tables.has(table)) return [];
  const [, strict, columns] = UNIQUE.exec(body) ?? [];
  if (columns !== undefined)
    return strict !== undefined || mayRefuseRow(table, columns, fresh)
      ? [{ fault: `a unique constraint is on an older table: ${statement}` }]
      : [];
  const areNew = (text: string): boolean => columnsIn(table, text).every((column) => fresh.columns.has(column));
  const [, referring] = FOREIGN_KEY.exec(body) ?? [];
  if (referring !== undefined)
    return areNew(referring) ? [] : [{ fault: `a foreign key is on an older column: ${statement}` }];
  const [, condition] = CHECK.exec(body) ?? [];
  if (condition === undefined) return [{ fault: `a constraint of another kind is on an older table: ${statement}` }];
  const rule = `${table}.${name}`;
  return areNew(condition) || isAsWide(before.checks.get(rule), condition)
    ? []
    : [{ fault: `a check on an older table is new or narrower: ${statement}`, rule }];
}

/** Returns what the statements of one migration take away from an older hub; `before` are the rules of the schema before the migration. */
export function faultsOf(statements: readonly string[], before: SchemaRules): Fault[] {
  const plain = plainSql(statements);
  const fresh = newOf(plain);
  return plain.flatMap((statement): Fault[] => {
    const [, table, constraint] = DROPPED.exec(statement) ?? [];
    // A constraint may be replaced by one of the same name, for example by one that allows more values.
    if (table !== undefined)
      return plain.some((other) => other.startsWith(`alter table ${table} add constraint ${constraint} `))
        ? []
        : [{ fault: `a constraint is dropped: ${statement}` }];
    const [, index = ""] = DROPPED_INDEX.exec(statement) ?? [];
    // An older hub names the columns of a unique index in ON CONFLICT, which fails without the index.
    if (before.uniqueIndexes.has(index)) return [{ fault: `a unique index is dropped: ${statement}` }];
    return [
      ...TAKES_AWAY.filter(([, form]) => form.test(statement)).map(([what]) => ({ fault: `${what}: ${statement}` })),
      ...narrowerRules(statement, fresh, before),
    ];
  });
}
