/** One JSON object a line on stderr, which journald keeps. A constant message and fields; never a secret. */
export type LogFields = Readonly<Record<string, unknown>>;
export interface Log {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export function createLog(write: (line: string) => void = (line) => process.stderr.write(`${line}\n`)): Log {
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}) => {
      const plain = Object.fromEntries(
        Object.entries(fields).map(([key, value]) => [key, value instanceof Error ? describe(value) : value]),
      );
      write(JSON.stringify({ time: new Date().toISOString(), level, message, ...plain }));
    };
  return { info: at("info"), warn: at("warn"), error: at("error") };
}

function describe(error: Error): LogFields {
  return {
    name: error.name,
    message: error.message,
    ...("code" in error ? { code: error.code } : {}),
    ...(error.cause instanceof Error ? { cause: describe(error.cause) } : {}),
  };
}
