import { describe, expect, it } from "vitest";
import { Secret } from "../../shared/secret.ts";
import { type ApiKey, authorization, parseApiKey } from "./oauth.ts";

function keyOf(text: string): ApiKey {
  const key = parseApiKey(new Secret(text));
  if (key === null) throw new Error("not a key");
  return key;
}

describe("OAuth PLAINTEXT", () => {
  it("signs with the empty consumer secret and the token's secret, encoded once as a header value", () => {
    expect(authorization(keyOf("CK:TK:TS"), new Date(1_764_850_000_999), "n1").reveal()).toBe(
      'OAuth oauth_version="1.0", oauth_signature_method="PLAINTEXT", oauth_consumer_key="CK", oauth_token="TK", oauth_signature="%26TS", oauth_timestamp="1764850000", oauth_nonce="n1"',
    );
  });

  it("uses a nonce of 128 random bits for each header", () => {
    const nonces = Array.from({ length: 100 }, () =>
      /oauth_nonce="([0-9a-f]{32})"$/.exec(authorization(keyOf("a:b:c"), new Date()).reveal())?.at(1),
    );
    expect(nonces).not.toContain(undefined);
    expect(new Set(nonces).size).toBe(100);
  });

  it("prints neither the header nor the secret", () => {
    const key = keyOf("CK:TK:hushhush");
    expect(`${authorization(key, new Date())} ${JSON.stringify(key)}`).not.toContain("hushhush");
  });

  it.each(["", "a:b", "a:b:", ":b:c", "a:b:c:d", "a::c"])("refuses the key %j", (text) => {
    expect(parseApiKey(new Secret(text))).toBeNull();
  });

  it("accepts a key with the newline at the end of a file", () => {
    expect(keyOf(" a:b:c\n").tokenSecret.reveal()).toBe("c");
  });
});
