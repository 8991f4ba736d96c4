import { createHash, randomBytes } from "node:crypto";

/** A browser refuses a cookie with the prefix `__Host-` unless the cookie is Secure, has the path `/` and names no domain. */
const PREFIX = "__Host-";
const SESSION = "muster";
const SIGN_IN = "muster-sign-in";
/** The seconds within which a browser must come back from the sign-in provider. */
const SIGN_IN_SECONDS = 600;
const ID = /^[A-Za-z0-9_-]{43}$/;

export interface Cookies {
  /** The names of the session's cookie and of the sign-in's cookie, and whether the browser may send both only over TLS. */
  readonly session: string;
  readonly signIn: string;
  readonly secure: boolean;
}

/**
 * Without TLS the hub listens on loopback only, so clear text does not leave the machine. A browser would not store a Secure cookie from a hub
 * without TLS.
 */
export const cookiesOf = (secure: boolean): Cookies => ({
  session: `${secure ? PREFIX : ""}${SESSION}`,
  signIn: `${secure ? PREFIX : ""}${SIGN_IN}`,
  secure,
});

const attributes = ({ secure }: Cookies): string => `Path=/; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;

/** The session's cookie has no expiry, so a browser deletes it when the browser ends. The hub, and not the browser, decides when a session ends. */
export const sessionCookie = (cookies: Cookies, id: string): string =>
  `${cookies.session}=${id}; ${attributes(cookies)}`;
export const signInCookie = (cookies: Cookies, value: string): string =>
  `${cookies.signIn}=${value}; ${attributes(cookies)}; Max-Age=${SIGN_IN_SECONDS}`;
export const noCookie = (cookies: Cookies, name: "session" | "signIn"): string =>
  `${cookies[name]}=; ${attributes(cookies)}; Max-Age=0`;

const valuesOf = (header: string | null, name: string): string[] =>
  (header ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));

export const hasCookie = (header: string | null, name: string): boolean => valuesOf(header, name).length > 0;

/**
 * Returns the value of a cookie, or null. If a browser sends two cookies of one name, somebody else may have set one of them, so the hub takes
 * neither.
 */
export function cookieValue(header: string | null, name: string): string | null {
  const values = valuesOf(header, name);
  return values.length === 1 ? (values[0] ?? null) : null;
}

/** 256 random bits, which nobody can guess. */
export const newSessionId = (): string => randomBytes(32).toString("base64url");
export const isSessionId = (text: string): boolean => ID.test(text);
/** The database holds only the hash of a session's id, so a copy of the database opens no session. */
export const sessionHash = (id: string): string => createHash("sha256").update(id).digest("hex");
