import { describe, expect, it } from "vitest";
import { isOfPerson } from "./access-token-holder.ts";

const CLI = "muster-cli";
const person = { sub: "ann", aud: "muster-api" };

describe("an access token", () => {
  it.each([
    ["RFC 9068", { ...person, client_id: CLI }],
    ["Keycloak and Auth0", { ...person, azp: CLI }],
    ["Okta", { ...person, cid: CLI }],
    ["Entra ID, version 1", { ...person, appid: CLI }],
    ["Entra ID with its mark of people", { ...person, azp: CLI, idtyp: "user" }],
    ["Dex, which names only the audience", { sub: "ann", aud: CLI }],
    ["Dex with a list of one audience", { sub: "ann", aud: [CLI] }],
  ])("is of a person who signed in by the command line: %s", (_provider, claims) => {
    expect(isOfPerson(claims, CLI)).toBe(true);
  });

  it.each([
    ["RFC 9068", { sub: "scheduler", aud: "muster-api", client_id: "scheduler" }],
    ["Keycloak, whose machines have a subject of their own", { sub: "4711", aud: "muster-api", azp: "scheduler" }],
    ["the client of the command line itself", { sub: CLI, aud: "muster-api", client_id: CLI }],
    ["the mark of Auth0", { ...person, azp: CLI, gty: "client-credentials" }],
    ["the mark of Entra ID", { ...person, azp: CLI, idtyp: "app" }],
    ["a person who signed in by another client", { ...person, client_id: "muster-page" }],
    ["no client", person],
    ["several audiences and no client", { sub: "ann", aud: [CLI, "muster-api"] }],
    ["a client that is no text", { ...person, client_id: null, azp: CLI }],
  ])("may be of anybody: %s", (_provider, claims) => {
    expect(isOfPerson(claims, CLI)).toBe(false);
  });
});
