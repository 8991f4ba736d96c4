const DEFAULT_PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "");

export const portOf = (url: URL): number => (url.port === "" ? (DEFAULT_PORTS[url.protocol] ?? 0) : Number(url.port));

/** Converts an IPv4 address in IPv6 notation to IPv4 notation. */
export function plainAddress(address: string): string;
export function plainAddress(address: string | undefined): string | null;
export function plainAddress(address: string | undefined): string | null {
  if (address === undefined) return null;
  const text = address.toLowerCase();
  const [, dotted] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(text) ?? [];
  if (dotted !== undefined) return dotted;
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(text) ?? [];
  if (high === undefined || low === undefined) return text;
  const [upper, lower] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [upper >> 8, upper & 255, lower >> 8, lower & 255].join(".");
}
