import { z } from "zod";
import { type Findings, fault, fine } from "./judged.ts";

const Microseconds = z.string().regex(/^\d{1,18}$/);

/** One entry of `journalctl -k -o json`: a message that is not valid UTF-8 is a list of bytes, and one that is too long is null. */
const Entry = z.looseObject({
  __CURSOR: z.string().max(1024),
  __MONOTONIC_TIMESTAMP: Microseconds.optional(),
  MESSAGE: z.union([
    z.string(),
    z.array(z.number()).transform((bytes) => Buffer.from(bytes).toString("latin1")),
    z.null(),
  ]),
});

export interface KernelLine {
  readonly text: string;
  /** The kernel's monotonic time of the log line in microseconds, or null if the journal does not have this time. */
  readonly atUs: number | null;
}

export interface KernelLog {
  readonly lines: readonly KernelLine[];
  /** The place in the systemd journal after which the next check begins; null if the journal has no entry. */
  readonly cursor: string | null;
}

/** Throws for a line that is no journal entry, because an unreadable log does not prove that the kernel reported no fault. */
export function parseKernelLog(output: string): KernelLog {
  const entries = output
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => Entry.parse(JSON.parse(line)));
  return {
    lines: entries.map(({ MESSAGE, __MONOTONIC_TIMESTAMP: at }) => ({
      text: MESSAGE ?? "",
      atUs: at === undefined ? null : Number(at),
    })),
    cursor: entries.at(-1)?.__CURSOR ?? null,
  };
}

/**
 * The kinds of faults that the kernel logs about the host's hardware, file systems and the kernel itself, each with the pattern of its log lines. If
 * the kernel kills a tenant's program for lack of memory, that is no fault of the host.
 */
const TROUBLES: readonly (readonly [string, RegExp])[] = [
  ["MachineCheck", /\[Hardware Error\]|Machine check events logged/i],
  ["PcieError", /PCIe Bus Error: severity=Uncorrect|AER: Uncorrected/i],
  [
    "DiskError",
    /I\/O error, dev |critical medium error|nvme\S*: (I\/O .* timeout|controller is down|Device not ready)/i,
  ],
  [
    "FileSystemError",
    /EXT4-fs error|XFS \(\S+\): (Corruption|Metadata corruption|log I\/O error|Filesystem has been shut down)/i,
  ],
  ["Lockup", /soft lockup|hard LOCKUP|blocked for more than \d+ seconds|rcu.*detected stalls/i],
  ["KernelBug", /kernel BUG at|Oops:|general protection fault/i],
  ["TooHot", /temperature above threshold, cpu clock is throttled|Package temperature above threshold/i],
];
const MOST_TEXT = 120;

/** Judges the warnings and errors that the kernel has logged since the previous check. */
export function judgeKernelLog(lines: readonly KernelLine[]): Findings {
  const found = lines.flatMap(({ text }) => {
    const kind = TROUBLES.find(([, pattern]) => pattern.test(text))?.[0];
    return kind === undefined ? [] : [{ kind, line: text.slice(0, MOST_TEXT) }];
  });
  const [first] = found;
  return {
    "health.kernel":
      first === undefined
        ? fine("No trouble in the kernel's log")
        : fault(first.kind, [...new Set(found.map(({ line }) => line))]),
  };
}
