import { describe, expect, it } from "vitest";
import { openText, sealText } from "./sealed-text.ts";
import {
  cookiesOf,
  cookieValue,
  hasCookie,
  isSessionId,
  newSessionId,
  noCookie,
  sessionCookie,
  sessionHash,
  signInCookie,
} from "./session-cookie.ts";
import { fromCookie, placeOf, toCookie } from "./sign-in-state.ts";

describe("the cookies of a session", () => {
  it("have the prefix and Secure with TLS, and neither in clear text", () => {
    const [tls, clear] = [cookiesOf(true), cookiesOf(false)];
    expect(sessionCookie(tls, "x")).toBe("__Host-muster=x; Path=/; HttpOnly; SameSite=Lax; Secure");
    expect(sessionCookie(clear, "x")).toBe("muster=x; Path=/; HttpOnly; SameSite=Lax");
    expect(signInCookie(tls, "x")).toBe("__Host-muster-sign-in=x; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=600");
    expect(noCookie(tls, "session")).toBe("__Host-muster=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0");
  });

  it.each([
    [null, null, false],
    ["", null, false],
    ["muster=a", "a", true],
    ["x=1; muster=a; y=2", "a", true],
    ["muster-sign-in=b; muster=a=b", "a=b", true],
    ["xmuster=a", null, false],
    ["muster=a; muster=b", null, true],
    ["Muster=a", null, false],
  ])("of the header %j is %j", (header, value, has) => {
    expect(cookieValue(header, "muster")).toBe(value);
    expect(hasCookie(header, "muster")).toBe(has);
  });

  it("hold an id that nobody can guess, of which the hash shows nothing", () => {
    const ids = new Set(Array.from({ length: 100 }, newSessionId));
    expect(ids.size).toBe(100);
    for (const id of ids) expect([isSessionId(id), sessionHash(id).length]).toEqual([true, 64]);
    for (const wrong of ["", "a", "a".repeat(44), `${"a".repeat(42)} `, `${"a".repeat(42)}=`])
      expect(isSessionId(wrong)).toBe(false);
  });
});

describe("a sealed text", () => {
  it("is opened by the session that sealed it, and by no other", () => {
    const [own, other] = [newSessionId(), newSessionId()];
    const sealed = sealText("refresh-token", own);
    expect(sealed).not.toContain("refresh");
    expect(openText(sealed, own)).toBe("refresh-token");
    expect(openText(sealed, other)).toBeNull();
    expect(sealText("refresh-token", own)).not.toBe(sealed);
  });

  it("is not opened after any change", () => {
    const id = newSessionId();
    const bytes = Buffer.from(sealText("refresh-token", id), "base64url");
    for (const at of bytes.keys()) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      expect(openText(changed.toString("base64url"), id)).toBeNull();
    }
    for (const cut of ["", "a", bytes.subarray(0, 27).toString("base64url")]) expect(openText(cut, id)).toBeNull();
  });
});

describe("the cookie of a sign-in that has begun", () => {
  const kept = { state: "s".repeat(43), nonce: "n".repeat(43), verifier: "v".repeat(43), place: "console/nodes/1?a=b" };
  it("gives back what the hub kept, and nothing for any other text", () => {
    expect(fromCookie(toCookie(kept))).toEqual(kept);
    const places = ["https://evil.example", "//evil.example", "console", "console/\n", `console/${"x".repeat(600)}`];
    const wrong = [
      null,
      "",
      "x",
      "a.b.c.d",
      `${toCookie(kept)}.more`,
      toCookie({ ...kept, state: "" }),
      "a".repeat(3000),
    ];
    for (const one of [...wrong, ...places.map((place) => toCookie({ ...kept, place }))])
      expect(fromCookie(one)).toBeNull();
    for (const place of places) expect(placeOf(place)).toBe("console/");
    expect(placeOf("console/nodes?status=offline")).toBe("console/nodes?status=offline");
  });
});
