import { SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AccessTokenFault, AccessTokens, type Verified } from "../../../hub/sign-in/access-token.ts";
import { makeKey, RESOURCE, TestProvider } from "../../fakes/oidc/provider.ts";
import { oidcSettings } from "../../support/oidc-settings.ts";

const ago = (seconds: number): number => Math.floor(Date.now() / 1000) - seconds;
const refused = (fault: AccessTokenFault): Verified => ({ kind: "refused", fault });

describe("an access token of a provider", () => {
  let provider: TestProvider;
  beforeAll(async () => {
    provider = await TestProvider.start([]);
  });
  afterAll(() => provider.close());
  const checker = (more = {}, now?: () => number) => new AccessTokens(oidcSettings(provider, more), now);

  it("is valid with the provider's signature, the issuer, an audience of the hub and the right typ", async () => {
    const token = await provider.accessToken({ groups: ["gpu-admins"] });
    expect(await checker().verify(token)).toMatchObject({
      kind: "valid",
      claims: { sub: "ann", groups: ["gpu-admins"] },
    });
    const several = await provider.accessToken({ aud: ["https://other.example", RESOURCE] });
    expect((await checker({ audiences: ["x", RESOURCE] }).verify(several)).kind).toBe("valid");
  });

  it.each<[string, AccessTokenFault, Record<string, unknown>, Record<string, unknown>]>([
    ["another issuer", "issuer", { iss: "https://evil.example" }, {}],
    ["an issuer that only begins alike", "issuer", { iss: "ISSUER/" }, {}],
    ["no issuer", "issuer", { iss: undefined }, {}],
    ["another audience", "audience", { aud: "https://other.example" }, {}],
    ["no audience", "audience", { aud: undefined }, {}],
    ["a past expiry", "expired", { exp: ago(60) }, {}],
    ["no expiry", "claims", { exp: undefined }, {}],
    ["a later begin", "not_yet_valid", { nbf: ago(-600) }, {}],
    ["no subject", "claims", { sub: undefined }, {}],
    ["the typ of another JWT", "type", {}, { typ: "JWT" }],
    ["no typ", "type", {}, { typ: undefined }],
    ["an unknown key", "signature", {}, { kid: "key-of-nobody" }],
  ])("is refused with %s", async (_, fault, claims, header) => {
    const own = Object.entries(claims).map(([name, value]) => [
      name,
      value === "ISSUER/" ? `${provider.issuer}/` : value,
    ]);
    const token = await provider.accessToken(Object.fromEntries(own), { header });
    expect(await checker().verify(token)).toEqual(refused(fault));
  });

  it("is refused with another signature: of another key, changed, removed, or of a shared secret", async () => {
    const valid = await provider.accessToken();
    const [head = "", body = "", signature = ""] = valid.split(".");
    const foreign = await makeKey();
    const byForeign = await provider.accessToken({}, { key: { ...foreign, kid: provider.key.kid } });
    expect(await checker().verify(byForeign)).toEqual(refused("signature"));
    const claims = JSON.parse(Buffer.from(body, "base64url").toString());
    const changed = Buffer.from(JSON.stringify({ ...claims, groups: ["gpu-admins"] })).toString("base64url");
    expect(await checker().verify(`${head}.${changed}.${signature}`)).toEqual(refused("signature"));
    const none = Buffer.from(JSON.stringify({ alg: "none", typ: "at+jwt" })).toString("base64url");
    expect(await checker().verify(`${none}.${body}.`)).toEqual(refused("algorithm"));
    // The public key is no secret, so a token signed with the key's text as a shared secret proves nothing.
    const shared = new TextEncoder().encode(JSON.stringify(provider.key.jwk));
    const byShared = await new SignJWT(claims).setProtectedHeader({ alg: "HS256", typ: "at+jwt" }).sign(shared);
    expect(await checker().verify(byShared)).toEqual(refused("algorithm"));
  });

  it("is refused by an algorithm that the settings do not list", async () => {
    expect(await checker({ algorithms: ["RS256"] }).verify(await provider.accessToken())).toEqual(refused("algorithm"));
  });

  it.each(["", "a", "a.b", "a.b.c", "....", "eyJhbGciOiJFUzI1NiJ9.e30.AAAA", `${"a".repeat(4000)}.b.c`])(
    "is refused if it is no JWT: %.40s",
    async (text) => {
      expect((await checker().verify(text)).kind).toBe("refused");
    },
  );

  it("may have another typ if the settings say so, and is never accepted without an audience in the settings", async () => {
    const token = await provider.accessToken({}, { header: { typ: "JWT" } });
    expect((await checker({ tokenType: "any" }).verify(token)).kind).toBe("valid");
    expect(await checker({ audiences: [] }).verify(await provider.accessToken())).toEqual(refused("no_audience"));
  });
});

describe("a provider that changes", () => {
  it("signs with a new key: the hub reads the keys again, and refuses the removed key", async () => {
    const provider = await TestProvider.start([]);
    const checker = new AccessTokens(oidcSettings(provider), undefined, { keysPauseMs: 0 });
    const before = await provider.accessToken();
    expect((await checker.verify(before)).kind).toBe("valid");
    await provider.rotateKey();
    expect((await checker.verify(await provider.accessToken())).kind).toBe("valid");
    expect(await checker.verify(before)).toEqual(refused("signature"));
    await provider.close();
  });

  it("does not get a request for every token with an unknown key", async () => {
    const provider = await TestProvider.start([]);
    const checker = new AccessTokens(oidcSettings(provider));
    await checker.verify(await provider.accessToken());
    const reads = () => provider.asked.filter((one) => one.startsWith("GET /jwks")).length;
    const before = reads();
    for (let n = 0; n < 20; n += 1) await checker.verify(await provider.accessToken({}, { header: { kid: `k${n}` } }));
    expect(reads() - before).toBeLessThanOrEqual(1);
    await provider.close();
  });

  it("is away: tokens of known keys stay valid for a day, and others are neither valid nor refused", async () => {
    const provider = await TestProvider.start([]);
    const time = { later: 0 };
    const checker = new AccessTokens(oidcSettings(provider), () => Date.now() + time.later, {
      keysPauseMs: 0,
      keysMaxAgeMs: 0,
    });
    const token = await provider.accessToken();
    expect((await checker.verify(token)).kind).toBe("valid");
    const unknown = await provider.accessToken({}, { key: await makeKey() });
    const wrong = await provider.accessToken({ aud: "x" });
    provider.failsWith = 503;
    expect((await checker.verify(token)).kind).toBe("valid");
    expect(await checker.verify(wrong)).toEqual(refused("audience"));
    expect(await checker.verify(unknown)).toEqual({ kind: "provider_away" });
    await provider.close();
    expect((await checker.verify(token)).kind).toBe("valid");
    time.later = 25 * 3_600_000;
    expect(await checker.verify(token)).toEqual({ kind: "provider_away" });
    expect(await new AccessTokens(oidcSettings(provider)).verify(token)).toEqual({ kind: "provider_away" });
  });
});
