import { Textarea } from "@mantine/core";
import type { ReactNode } from "react";
import { Note } from "../parts/note.tsx";
import { counted } from "../parts/tones.ts";
import type { CsvTable } from "./csv.ts";
import classes from "./forms.module.css";

const MOST_FAULTS = 100;

/** A field for a table as CSV, pasted or from a file, with the faults by line and column. */
export function CsvField({
  label,
  description,
  example,
  text,
  table,
  of,
  error,
  onChange,
}: {
  readonly label: string;
  readonly description: ReactNode;
  readonly example: string;
  readonly text: string;
  readonly table: CsvTable;
  /** What a row is, for example `host`. */
  readonly of: string;
  readonly error?: string | undefined;
  readonly onChange: (text: string) => void;
}): ReactNode {
  const { rows, faults } = table;
  return (
    <>
      <Textarea
        label={label}
        description={description}
        placeholder={example}
        rows={9}
        spellCheck={false}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        error={error}
        value={text}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      <label className={classes.file}>
        <span>or take a file</span>
        <input
          type="file"
          accept=".csv,.tsv,.txt,text/csv"
          onChange={(event) => {
            void event.currentTarget.files?.[0]?.text().then(onChange);
            // The console empties the file field after each choice, because a browser reports a chosen file only if its name differs, and a corrected
            // file has the same name.
            event.currentTarget.value = "";
          }}
        />
      </label>
      <div role="status" className={classes.table}>
        {faults.length > 0 ? (
          <Note tone="bad" title={`${counted(faults.length, "fault")}; nothing is sent before all rows are right`}>
            <ul className={classes.rows}>
              {faults.slice(0, MOST_FAULTS).map(({ line, column, message }) => (
                <li key={`${line} ${column} ${message}`}>
                  line {line}
                  {column === null ? "" : `, column ${column}`}: {message}
                </li>
              ))}
              {faults.length > MOST_FAULTS ? <li>{faults.length - MOST_FAULTS} more</li> : null}
            </ul>
          </Note>
        ) : text.trim() === "" ? null : (
          <Note tone={rows.length === 0 ? "attention" : "good"} title={`${counted(rows.length, of)} in the table`} />
        )}
      </div>
    </>
  );
}
