import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ConfigError, loadConfig } from "./config.ts";

const OIDC = {
  MUSTER_PUBLIC_URL: "https://muster.example/",
  MUSTER_OIDC_ISSUER: "https://login.example/realms/ops",
  MUSTER_OIDC_CLIENT_ID: "muster",
  MUSTER_OIDC_ROLES_FILE: "/r",
};

describe("the settings of the sign-in", () => {
  it("need nothing, and then there is no provider", () => {
    expect(loadConfig({}).signIn).toEqual({ publicUrl: null, secure: false, oidc: null });
  });

  it("may be those that the documents show", () => {
    const text = readFileSync(new URL("../../docs/sign-in.md", import.meta.url), "utf8");
    const block = /```\n(MUSTER_PUBLIC_URL=.*?)```/s.exec(text)?.[1] ?? "";
    const env = Object.fromEntries(
      block
        .trim()
        .split("\n")
        .map((line) => line.split("=", 2)),
    );
    expect(loadConfig(env).signIn.oidc).toMatchObject({ cliClientId: "muster-cli", audiences: ["muster-api"] });
  });

  it("have safe defaults", () => {
    expect(loadConfig(OIDC).signIn).toMatchObject({
      publicUrl: "https://muster.example",
      secure: true,
      oidc: {
        issuer: "https://login.example/realms/ops",
        clearText: false,
        clientSecretFile: null,
        cliClientId: "muster",
        audiences: [],
        algorithms: ["RS256", "PS256", "ES256", "EdDSA"],
        tokenType: "at+jwt",
      },
    });
  });

  it("make the cookie Secure whenever browsers use TLS", () => {
    const secure = (env: Record<string, string>) => loadConfig(env).signIn.secure;
    expect(secure({ MUSTER_HTTP_TLS_CERT: "/c", MUSTER_HTTP_TLS_KEY: "/k" })).toBe(true);
    expect(secure({ MUSTER_HTTP_TLS_BY_PROXY: "true" })).toBe(true);
    expect(secure({ MUSTER_PUBLIC_URL: "https://muster.example" })).toBe(true);
    expect(secure({ MUSTER_PUBLIC_URL: "http://127.0.0.1:8480" })).toBe(false);
  });

  it.each([
    [
      { MUSTER_OIDC_ISSUER: OIDC.MUSTER_OIDC_ISSUER },
      /needs MUSTER_OIDC_CLIENT_ID, MUSTER_OIDC_ROLES_FILE and MUSTER_PUBLIC_URL/,
    ],
    [{ ...OIDC, MUSTER_PUBLIC_URL: "http://muster.example" }, /MUSTER_PUBLIC_URL: must begin with https/],
    [{ ...OIDC, MUSTER_PUBLIC_URL: "https://muster.example/x" }, /MUSTER_PUBLIC_URL: must be scheme/],
    [{ ...OIDC, MUSTER_OIDC_ISSUER: "http://login.example" }, /MUSTER_OIDC_ISSUER: must begin with https/],
    [{ ...OIDC, MUSTER_OIDC_ISSUER: "http://127.0.0.1.evil.example" }, /MUSTER_OIDC_ISSUER/],
    [{ ...OIDC, MUSTER_OIDC_ALGORITHMS: "RS256 HS256" }, /MUSTER_OIDC_ALGORITHMS: must be some of/],
    [{ ...OIDC, MUSTER_OIDC_ALGORITHMS: "none" }, /MUSTER_OIDC_ALGORITHMS/],
    [{ ...OIDC, MUSTER_OIDC_TOKEN_TYPE: "JWT" }, /MUSTER_OIDC_TOKEN_TYPE/],
    [{ ...OIDC, MUSTER_OIDC_SCOPES: "openid  profile" }, /MUSTER_OIDC_SCOPES/],
    [
      { ...OIDC, MUSTER_PUBLIC_URL: "http://localhost:8480", MUSTER_HTTP_TLS_BY_PROXY: "true" },
      /MUSTER_PUBLIC_URL must begin with https/,
    ],
  ])("are refused: %o", (env, says) => {
    expect(() => loadConfig(env)).toThrow(ConfigError);
    expect(() => loadConfig(env)).toThrow(says);
  });

  it.each(["http://127.0.0.1:5556/dex", "http://localhost:5556", "http://[::1]:5556"])(
    "allow clear text on loopback: %s",
    (issuer) => {
      expect(loadConfig({ ...OIDC, MUSTER_OIDC_ISSUER: issuer }).signIn.oidc?.clearText).toBe(true);
    },
  );
});
