import { UsageError } from "../errors.ts";
import { type Checked, checkRows } from "./check-rows.ts";
import type { RowForm } from "./row-form.ts";

/** Checks hosts that the command line names as HOSTNAME=BMC-ADDRESS by the rules of the rows of a file. */
export function checkWords(words: readonly string[], form: RowForm): Checked {
  const lines = words.map((word, index) => {
    const [, hostname, address] = /^([^=]+)=(.+)$/.exec(word) ?? [];
    if (hostname === undefined || address === undefined)
      throw new UsageError(`Write a host as HOSTNAME=BMC-ADDRESS, not ${word}.`);
    return { line: index + 1, values: { hostname, ipmi_ip: address } };
  });
  const checked = checkRows({ lines, faults: [] }, form);
  const [fault] = checked.faults;
  if (fault !== undefined)
    throw new UsageError(`${words[fault.line - 1]}: ${fault.column ?? "the host"} ${fault.message}.`);
  return checked;
}
