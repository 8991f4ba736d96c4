/** Production code must use each failure code, MAAS call and profile setting, and each owner that may change a node's status. */
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { TRANSITION_OWNERS } from "../hub/node/transitions.ts";
import { ProfileCreate } from "../shared/api/profiles.ts";
import { FAILURES } from "../shared/failures.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CODE = globSync("{hub,shared,cloud-init}/**/*.ts", { cwd: ROOT })
  .filter((path) => !/[.](test|fixture)[.]ts$/.test(path))
  .map((path) => ({ path, text: readFileSync(`${ROOT}${path}`, "utf8") }));

const isUsed = (use: RegExp, declared: RegExp): boolean =>
  CODE.some(({ path, text }) => !declared.test(path) && use.test(text));

describe("production code uses", () => {
  it("each failure code", () => {
    const codes = Object.values(FAILURES).flatMap((rule): readonly string[] => rule.codes);
    expect(codes).toContain("discovery_timeout");
    const unused = codes.filter((code) => !isUsed(new RegExp(`"${code}"`), /^shared[/]failures[.]ts$/));
    expect(unused).toEqual([]);
  });

  it("each call of the MAAS port, counting the client's own uses only in the probe and the sync interval", () => {
    const { text = "" } = CODE.find(({ path }) => path === "hub/maas/port.ts") ?? {};
    const port = text.slice(text.indexOf("export interface MaasPort {"), text.indexOf("\n}\n"));
    const calls = [...port.matchAll(/^ {2}(\w+)[(]/gm)].map(([, name = ""]) => name);
    expect(calls).toContain("createMachine");
    const unused = calls.filter(
      (call) => !isUsed(new RegExp(`(?<!bmc)[.]${call}[(]`), /^hub[/]maas[/](?!probe|sync-interval)/),
    );
    expect(unused).toEqual([]);
  });

  it("each setting of a profile", () => {
    const knobs = Object.keys(ProfileCreate.shape);
    expect(knobs).toContain("boot_disk_pattern");
    const column = (knob: string): string => knob.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    const readBy = (knob: string): RegExp => new RegExp(`\\b(${column(knob)}|[a-z][.]${knob})\\b`);
    const declared = /^hub[/](db[/]schema[/]|http[/]routes[/]profile)/;
    expect(knobs.filter((knob) => !isUsed(readBy(knob), declared))).toEqual([]);
  });

  it("each owner that may change a node's status", () => {
    const declared = /^hub[/]node[/]transitions[.]ts$/;
    const unused = TRANSITION_OWNERS.filter((owner) => !isUsed(new RegExp(`to: "\\w+", owner: "${owner}"`), declared));
    expect(unused).toEqual([]);
  });
});
