import { randomBytes } from "node:crypto";

/** A leaked secret: the secret's name, the spelling in which the search found it, and the place of the leak. */
export interface Leak {
  readonly secret: string;
  readonly spelling: string;
  readonly place: string;
}

/**
 * The search looks for half of a secret only if the half has at least `SHORTEST_HALF` characters, because shorter halves also match harmless texts.
 */
const SHORTEST_HALF = 10;

const base64Of = (secret: string): [string, string][] =>
  // Inside a longer base64 text, a secret begins at one of three offsets. The search for a secret omits the base64 characters that depend on the
  // bytes before and after the secret.
  [0, 1, 2].map((shift) => {
    const encoded = Buffer.from("\0".repeat(shift) + secret).toString("base64");
    const whole = Math.floor(((Buffer.byteLength(secret) + shift) * 8) / 6);
    return [`base64, shifted by ${shift}`, encoded.slice(Math.ceil((shift * 8) / 6), whole)];
  });

/** Returns the spellings in which a secret may leak: escaped, encoded, cut in half, or reversed. */
function spellingsOf(secret: string): ReadonlyMap<string, string> {
  const middle = Math.ceil(secret.length / 2);
  const hex = Buffer.from(secret).toString("hex");
  const halves: [string, string][] = [
    ["first half", secret.slice(0, middle)],
    ["second half", secret.slice(middle)],
  ];
  const base64 = base64Of(secret);
  const all: [string, string][] = [
    ["as it is", secret],
    ["reversed", [...secret].reverse().join("")],
    ...halves.filter(([, half]) => half.length >= SHORTEST_HALF),
    ["in JSON", JSON.stringify(secret).slice(1, -1)],
    ["in JSON in JSON", JSON.stringify(JSON.stringify(secret).slice(1, -1)).slice(1, -1)],
    ["in an address", encodeURIComponent(secret)],
    ["in a form", new URLSearchParams([["", secret]]).toString().slice(1)],
    ["in HTML", secret.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`)],
    ["in hex", hex],
    ["in capital hex", hex.toUpperCase()],
    ...base64,
    ...base64.map(([how, text]): [string, string] => [
      `${how}, for addresses`,
      text.replaceAll("+", "-").replaceAll("/", "_"),
    ]),
  ];
  return new Map(all.filter(([, text], at) => all.findIndex(([, other]) => other === text) === at));
}

export class SecretSearch {
  readonly #secrets = new Map<string, ReadonlyMap<string, string>>();

  /** Creates a random secret, to which `more` adds characters that encoders must escape. */
  plant(name: string, more = ""): string {
    const secret = `Cnry${randomBytes(18).toString("base64url").replace(/[-_]/g, "x")}${more}`;
    this.add(name, secret);
    return secret;
  }

  add(name: string, secret: string): void {
    if (secret.length < 2 * SHORTEST_HALF - 4)
      throw new Error(`${name} is too short to be told from other texts: it has ${secret.length} characters`);
    const known = [...this.#secrets.values()].some((spellings) => spellings.get("as it is") === secret);
    if (!known)
      this.#secrets.set(this.#secrets.has(name) ? `${name} (${this.#secrets.size})` : name, spellingsOf(secret));
  }

  get names(): string[] {
    return [...this.#secrets.keys()];
  }
  /** All spellings of all known secrets, which PostgreSQL searches in its rows. */
  get spellings(): string[] {
    return [...this.#secrets.values()].flatMap((spellings) => [...spellings.values()]);
  }

  /** `leaksIn` searches a text with and without its white space, because encoders wrap long texts. */
  leaksIn(place: string, text: string): Leak[] {
    const unwrapped = text.replace(/(?:\s|\\n)+/g, "");
    return [...this.#secrets].flatMap(([secret, spellings]) => {
      const found = [...spellings].find(([, one]) => text.includes(one) || unwrapped.includes(one));
      return found === undefined ? [] : [{ secret, spelling: found[0], place }];
    });
  }
}
