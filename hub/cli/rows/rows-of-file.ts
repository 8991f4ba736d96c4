import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { plain } from "../output/plain.ts";
import type { Flags } from "../program/flags.ts";
import { type Checked, checkRows } from "./check-rows.ts";
import { readCsv } from "./read-csv.ts";
import { faultText, type GoodRow, type RowForm } from "./row-form.ts";

/**
 * Reads and checks all rows of a file. A fault in any row ends the command before anything is sent, unless the operator wants to leave out the rows
 * with faults.
 */
export async function rowsOfFile(form: RowForm, file: string, flags: Flags, io: Io): Promise<Checked> {
  const checked = checkRows(readCsv(await textOf(file), form, file), form);
  io.err(checked.faults.map((fault) => `${plain(faultText(file, fault))}\n`).join(""));
  const { rows, faults } = checked;
  if (faults.length > 0 && flags["skipInvalid"] !== true)
    throw new UsageError(
      `${faults.length} faults, so nothing was sent. Correct ${file}, or send the other ${rows.length} rows by --skip-invalid.`,
    );
  if (rows.length === 0) throw new UsageError(`${file} has no row to send.`);
  io.err(`${file}: ${rows.length} rows checked${faults.length === 0 ? "" : `, ${faults.length} faults left out`}.\n`);
  return checked;
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file === "-" ? "/dev/stdin" : file, "utf8");
  } catch (error) {
    throw new UsageError(`${file} could not be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export function partsOf(rows: readonly GoodRow[], atMost: number): (readonly GoodRow[])[] {
  const parts: (readonly GoodRow[])[] = [];
  for (let at = 0; at < rows.length; at += atMost) parts.push(rows.slice(at, at + atMost));
  return parts;
}

/**
 * Returns an idempotency key that depends on the whole content of the request. If the same file is sent again, for example after Ctrl-C or a lost
 * connection, the hub recognizes the requests that it has already carried out, and the command continues with the others.
 */
export const keyOf = (command: string, body: unknown): string =>
  `${command}-${createHash("sha256").update(JSON.stringify(body)).digest("hex")}`;
