/** Hub and agent log one JSON object per line, with a constant message and fields. No line of the log contains a secret. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  with(fields: LogFields): Log;
}

export type LogSink = (line: string, at: LogLevel) => void;

export interface LogOutput {
  readonly sink: LogSink;
  readonly now: () => Date;
  /** The number of lines of an error's stack trace that the log contains. */
  readonly stackLines: number;
}

export const isAtLeast = (level: LogLevel, threshold: LogLevel): boolean =>
  LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(threshold);

export function logTo(output: LogOutput, level: LogLevel, base: LogFields = {}): Log {
  const write = (at: LogLevel, message: string, fields: LogFields = {}): void => {
    if (!isAtLeast(at, level)) return;
    const told = { ...base, ...describeErrors(fields, output.stackLines) };
    output.sink(JSON.stringify({ time: output.now().toISOString(), level: at, message, ...told }), at);
  };
  return {
    debug: (message, fields) => write("debug", message, fields),
    info: (message, fields) => write("info", message, fields),
    warn: (message, fields) => write("warn", message, fields),
    error: (message, fields) => write("error", message, fields),
    with: (fields) => logTo(output, level, { ...base, ...fields }),
  };
}

export const toStderr: LogSink = (line) => void process.stderr.write(`${line}\n`);

/** A program's log goes to stderr by default, one JSON object per line. */
export const createLog = (level: LogLevel, sink: LogSink = toStderr, stackLines = 5): Log =>
  logTo({ sink, now: () => new Date(), stackLines }, level);

/** Replaces each error in the log's fields by its name, message, code and causes, because JSON.stringify gives an empty object for an error. */
const describeErrors = (fields: LogFields, stackLines: number): LogFields =>
  Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key,
      value instanceof Error ? describeError(value, stackLines) : value,
    ]),
  );

function describeError(error: Error, stackLines: number): LogFields {
  const stack = error.stack
    ?.split("\n")
    .slice(1, 1 + stackLines)
    .map((line) => line.trim());
  return {
    name: error.name,
    message: error.message,
    ...("code" in error ? { code: error.code } : {}),
    ...(error.cause instanceof Error ? { cause: describeError(error.cause, stackLines) } : {}),
    ...(stackLines === 0 ? {} : { stack }),
  };
}
