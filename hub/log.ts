/** Structured log lines: a constant message and fields (never interpolation, never a secret). One JSON object a line on stderr. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger that adds `fields` to each line. */
  with(fields: LogFields): Log;
}

export type LogSink = (line: string, at: LogLevel) => void;

export const isAtLeast = (level: LogLevel, threshold: LogLevel): boolean =>
  LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(threshold);

export const toStderr: LogSink = (line) => void process.stderr.write(`${line}\n`);

export function createLog(level: LogLevel, sink: LogSink = toStderr, base: LogFields = {}): Log {
  const write = (at: LogLevel, message: string, fields: LogFields = {}): void => {
    if (!isAtLeast(at, level)) return;
    sink(
      JSON.stringify({ time: new Date().toISOString(), level: at, message, ...base, ...describeErrors(fields) }),
      at,
    );
  };
  return {
    debug: (message, fields) => write("debug", message, fields),
    info: (message, fields) => write("info", message, fields),
    warn: (message, fields) => write("warn", message, fields),
    error: (message, fields) => write("error", message, fields),
    with: (fields) => createLog(level, sink, { ...base, ...fields }),
  };
}

/** Errors do not serialise by themselves; name, message, code and the chain of causes do. */
function describeErrors(fields: LogFields): LogFields {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, value instanceof Error ? describeError(value) : value]),
  );
}

function describeError(error: Error): LogFields {
  return {
    name: error.name,
    message: error.message,
    ...("code" in error ? { code: error.code } : {}),
    ...(error.cause instanceof Error ? { cause: describeError(error.cause) } : {}),
    stack: error.stack
      ?.split("\n")
      .slice(1, 6)
      .map((line) => line.trim()),
  };
}
