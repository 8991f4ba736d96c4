import { describe, expect, it } from "vitest";
import { ConfigError, loadConfig } from "./config.ts";

describe("loadConfig", () => {
  it("refuse a name that no setting has, and suggest the one that was meant", () => {
    expect(() => loadConfig({ MUSTER_SECRET: "vault", MUSTER_WEATHER: "hunter2" })).toThrow(
      "The hub's settings are not valid. There is no setting MUSTER_SECRET. Did you mean MUSTER_SECRETS? There is no setting MUSTER_WEATHER. See docs/settings.md.",
    );
    const ofOthers = {
      MUSTER_URL: "x",
      MUSTER_TOKEN_FILE: "x",
      MUSTER_TOKEN: "x",
      MUSTER_CA_FILE: "x",
      MUSTER_ROOT: "/",
      MUSTER_TEST_CHROMIUM: "x",
    };
    expect(loadConfig(ofOthers).http.port).toBe(8480);
  });

  it("has a default for every setting, so that `npm run hub` needs none", () => {
    const config = loadConfig({});
    expect(config.databaseUrl).toBeNull();
    expect(config.http).toEqual({ host: "127.0.0.1", port: 8480, tls: null, proxies: null });
  });

  it("reads the proxies as addresses and networks", () => {
    expect(loadConfig({ MUSTER_HTTP_PROXIES: "10.0.0.7,10.1.0.0/16" }).http.proxies?.check("10.1.2.3")).toBe(true);
    expect(() => loadConfig({ MUSTER_HTTP_PROXIES: "proxy.example" })).toThrow(/MUSTER_HTTP_PROXIES/);
  });

  it("reads the places of the audit export", () => {
    const of = (syslog: string) =>
      loadConfig({ MUSTER_AUDIT_FILE: "audit.jsonl", MUSTER_AUDIT_SYSLOG: syslog }).auditExport;
    expect(of("udp://log.example")).toEqual({
      file: `${process.cwd()}/audit.jsonl`,
      syslog: "udp://log.example",
    });
    expect(() => of("/dev/log")).toThrow(/MUSTER_AUDIT_SYSLOG: must be unix:/);
    expect(loadConfig({}).auditExport).toEqual({ file: null, syslog: null });
  });

  it("treats an empty variable as not set, as env files write it", () => {
    expect(loadConfig({ DATABASE_URL: "", MUSTER_HTTP_PORT: "" }).http.port).toBe(8480);
  });

  it("names all invalid settings at once and never a value", () => {
    const load = () => loadConfig({ DATABASE_URL: "mysql://root:hunter2@db/x", MUSTER_HTTP_PORT: "99999" });
    expect(load).toThrow(ConfigError);
    expect(load).toThrow(/DATABASE_URL.*MUSTER_HTTP_PORT/);
    expect(load).not.toThrow(/hunter2/);
  });

  it("accepts the address for hosts only as an origin, because agents request paths below its root", () => {
    const urlOf = (text: string) => loadConfig({ MUSTER_AGENT_URL: text }).agent.url;
    for (const good of ["https://hub.example", "https://hub.example:8481/", "https://[2001:db8::1]:8481"])
      expect(urlOf(good)).toBe(good);
    for (const more of ["/muster", "/?a=b", "?", "#x", "//"])
      expect(() => urlOf(`https://hub.example:8481${more}`)).toThrow(
        /MUSTER_AGENT_URL: must be only https:..HOST:PORT/,
      );
    expect(() => urlOf("https://me:hunter2@hub.example")).toThrow(ConfigError);
  });

  const tls = { MUSTER_HTTP_TLS_CERT: "/c", MUSTER_HTTP_TLS_KEY: "/k" };
  it("serves operators off loopback by TLS, its own or a proxy's", () => {
    const paths = { certFile: "/c", keyFile: "/k" };
    expect(loadConfig({ MUSTER_HTTP_HOST: "0.0.0.0", ...tls }).http.tls).toEqual(paths);
    expect(loadConfig({ MUSTER_HTTP_HOST: "::1", ...tls }).http.tls).toEqual(paths);
    expect(loadConfig({ MUSTER_HTTP_HOST: "0.0.0.0", MUSTER_HTTP_TLS_BY_PROXY: "true" }).http.tls).toBeNull();
  });

  it.each([
    [{ MUSTER_HTTP_HOST: "0.0.0.0" }, /MUSTER_HTTP_TLS_CERT and MUSTER_HTTP_TLS_KEY\. .*MUSTER_HTTP_TLS_BY_PROXY=true/],
    [{ MUSTER_HTTP_HOST: "hub.example", MUSTER_HTTP_TLS_BY_PROXY: "false" }, /in clear text/],
    [{ MUSTER_HTTP_TLS_CERT: "/c" }, /needed together/],
    [{ MUSTER_HTTP_HOST: "0.0.0.0", MUSTER_HTTP_TLS_BY_PROXY: "true", MUSTER_HTTP_TLS_KEY: "/k" }, /needed together/],
    [{ MUSTER_HTTP_HOST: "0.0.0.0", MUSTER_HTTP_TLS_BY_PROXY: "yes" }, /MUSTER_HTTP_TLS_BY_PROXY/],
  ])("refuses %o", (env, says) => {
    expect(() => loadConfig(env)).toThrow(ConfigError);
    expect(() => loadConfig(env)).toThrow(says);
  });

  it("keeps the database URL out of logs", () => {
    const config = loadConfig({ DATABASE_URL: "postgres://muster:hunter2@db/muster" });
    expect(JSON.stringify(config)).not.toContain("hunter2");
    expect(config.databaseUrl?.reveal()).toContain("hunter2");
  });

  it("shows the settings in effect by name, and of a secret only that it is set", () => {
    const given = {
      DATABASE_URL: "postgres://muster:hunter2@db/muster",
      VAULT_ROLE_ID: "hunter3",
      MUSTER_STATE_DIR: "/s",
    };
    const { inForce } = loadConfig({ ...given, PATH: "/bin" });
    expect(JSON.stringify(inForce)).not.toMatch(/hunter|PATH"/);
    const show = Object.fromEntries(inForce.map(({ name, value, given: isGiven }) => [name, [value, isGiven]]));
    expect(show).toMatchObject({
      DATABASE_URL: ["set", true],
      VAULT_ROLE_ID: ["set", true],
      VAULT_ADDR: [null, false],
      MUSTER_HTTP_PORT: [8480, false],
      MUSTER_STATE_DIR: ["/s", true],
      MUSTER_SHARED_DIR: ["/s", false],
      MUSTER_AGENT_PACKAGE_DIR: ["/s/agent-packages", false],
    });
    expect(loadConfig({}).inForce).toContainEqual({ name: "DATABASE_URL", value: null, given: false });
  });

  const vault = { MUSTER_SECRETS: "vault", VAULT_ADDR: "https://vault.example:8200/" };
  it("keeps secrets in files by default, whatever Vault's own variables say", () => {
    expect(loadConfig({ VAULT_ADDR: "https://vault.example:8200", VAULT_TOKEN: "x" }).secrets.kind).toBe("sealed_file");
    const byToken = loadConfig({ ...vault, VAULT_TOKEN_FILE: "/t" }).secrets;
    expect(byToken).toMatchObject({
      kind: "vault",
      url: "https://vault.example:8200",
      mount: "kv",
      deadlineMs: 10_000,
      credentials: { kind: "token", tokenFile: "/t" },
    });
    const byRole = loadConfig({ ...vault, VAULT_ROLE_ID: "r", VAULT_SECRET_ID_FILE: "/s" }).secrets;
    expect(byRole).toMatchObject({ credentials: { kind: "approle", roleId: "r", secretIdFile: "/s" } });
  });

  it.each([
    [{ MUSTER_SECRETS: "vault", VAULT_TOKEN_FILE: "/t" }, /needs VAULT_ADDR/],
    [vault, /VAULT_TOKEN_FILE or VAULT_ROLE_ID/],
    [{ ...vault, VAULT_TOKEN_FILE: "/t", VAULT_ROLE_ID: "r", VAULT_SECRET_ID_FILE: "/s" }, /either/],
    [{ ...vault, VAULT_ROLE_ID: "r" }, /needed together/],
    [{ ...vault, VAULT_TOKEN_FILE: "/t", VAULT_ADDR: "https://user:hunter2@vault" }, /VAULT_ADDR/],
    [{ ...vault, VAULT_TOKEN_FILE: "/t", VAULT_ADDR: "vault.example:8200" }, /VAULT_ADDR/],
    [{ ...vault, VAULT_TOKEN_FILE: "/t", MUSTER_VAULT_MOUNT: "/kv/" }, /MUSTER_VAULT_MOUNT/],
  ])("refuses %o", (env, says) => {
    expect(() => loadConfig(env)).toThrow(ConfigError);
    expect(() => loadConfig(env)).toThrow(says);
    expect(() => loadConfig(env)).not.toThrow(/hunter2/);
  });
});
