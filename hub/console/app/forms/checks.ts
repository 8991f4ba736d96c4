/**
 * The checks of fields before the console sends a form. The checks of form fields follow the rules of docs/openapi.json, and their messages say what
 * to type. The hub checks each form again, so a rule that the console lacks only costs the person a second attempt.
 */
export type Check = (value: string) => string | undefined;

const HOSTNAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const INTERFACE = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/;
const NAME = /^[a-z0-9][a-z0-9-]{0,63}$/;
const ACCOUNT = /^[a-z][a-z0-9_-]{0,31}$/;
const SYSTEM_ACCOUNT = /^[a-z_][a-z0-9_-]{0,31}$/;
const SKU = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const TOKEN_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const MAAS_TOKEN = /^[^:\s]+:[^:\s]+:[^:\s]+$/;
const PLACE = /^[A-Za-z0-9](?:[A-Za-z0-9 ._/-]{0,61}[A-Za-z0-9])?$/;
const MAC = /^(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/i;
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$/;

const given = (value: string): boolean => value.trim() !== "";

/** A check for a field that may stay empty and must otherwise pass `check`. */
export const optional =
  (check: Check): Check =>
  (value) =>
    given(value) ? check(value) : undefined;

const fits =
  (pattern: RegExp, message: string): Check =>
  (value) =>
    pattern.test(value.trim()) ? undefined : given(value) ? message : "is missing";

export const hostname = fits(
  HOSTNAME,
  "is no hostname: small letters, digits and hyphens, at most 63, without a domain",
);
export const interfaceName = fits(
  INTERFACE,
  "is no interface: letters, digits, dots, hyphens, underscores, at most 15",
);
export const name = fits(NAME, "is no name: small letters, digits and hyphens, at most 64");
export const account = fits(ACCOUNT, "is no account: begins with a small letter, then small letters, digits, - and _");
export const systemAccount = fits(SYSTEM_ACCOUNT, "is no account: small letters, digits, - and _, at most 32");
export const sku = fits(SKU, "is no SKU: small letters, digits, dots, hyphens and underscores, at most 64");
export const tokenName = fits(TOKEN_NAME, "is no name: letters, digits, dots, hyphens and underscores, at most 63");
export const maasToken = fits(MAAS_TOKEN, "is no API key of MAAS: three parts with colons between them");
export const place = fits(PLACE, "is no place: letters, digits, spaces and . _ / -, at most 63");
export const mac = fits(MAC, "is no MAC address, for example 52:54:00:12:34:56");

export const present: Check = (value) => (given(value) ? undefined : "is missing");

/** A coarse check for an IPv6 address; the browser's own parser of addresses checks the rest. */
const isIpv6 = (value: string): boolean =>
  /^[0-9a-f:.]+$/i.test(value) && value.includes(":") && URL.canParse(`http://[${value}]/`);

export const address: Check = (value) => {
  const text = value.trim();
  if (text === "") return "is missing";
  return IPV4.test(text) || isIpv6(text) ? undefined : "is no IPv4 or IPv6 address";
};

export const cidr: Check = (value) => {
  const [host = "", length = "", ...more] = value.trim().split("/");
  if (value.trim() === "") return "is missing";
  const good = more.length === 0 && IPV4.test(host) && /^(?:\d|[12]\d|3[0-2])$/.test(length);
  return good ? undefined : "is no IPv4 address with its network's length, for example 172.30.0.1/31";
};

export const whole =
  (least: number, most: number): Check =>
  (value) => {
    if (!given(value)) return "is missing";
    const number = Number(value);
    const good = /^\d+$/.test(value.trim()) && number >= least && number <= most;
    return good ? undefined : `is no whole number from ${least} to ${most}`;
  };

export const webAddress: Check = (value) => {
  if (!given(value)) return "is missing";
  const good = URL.canParse(value.trim()) && /^https?:\/\/[^/]/.test(value.trim());
  return good ? undefined : "is no address that begins with http:// or https://";
};

/** Returns the lines of a field of several lines, or the parts between commas, without empty ones. */
export const partsOf = (text: string, separator: RegExp = /[\s,]+/): string[] =>
  text
    .split(separator)
    .map((part) => part.trim())
    .filter((part) => part !== "");
