/** All citations and links in the repository must lead to existing headings and files. */
import { describe, expect, it } from "vitest";
import { citationOffences, decisionOffences, FORMS, linkOffences, type Text } from "./citations/citations.ts";
import { repositoryOffences, repositoryTexts } from "./citations/repository.ts";

/** The test assembles its citations from parts, so that the test file itself cites nothing. */
const cite = (form: string, number: string): string => `${form} ${number}`;
const DOCS = "docs";

const PAGES: readonly Text[] = [
  { path: "docs/architecture.md", text: "# Architecture\n\n## 1 The idea\n" },
  { path: "docs/maas.md", text: "# MAAS\n\n### 2.11 Network\n\n### 9th of all\n\n```\n## 7 in a block\n```\n" },
  { path: "docs/spec/lifecycle-4-onboarding.md", text: "# 4 Onboarding\n\n## 4.16. Discovery\n" },
  { path: "docs/spec/state-model.md", text: "## 3.2 Moves\n## 8 Verbs\n" },
  { path: "docs/spec/repair.md", text: "## 2 Signals\n" },
  { path: "docs/spec/external-provisioning.md", text: "## 2 Feature\n" },
  { path: "docs/decisions/README.md", text: "[F1](F1-breaker.md)\n" },
  {
    path: "docs/decisions/F1-breaker.md",
    text: "# F1 A breaker\n\n2026-11-20\n\n**Context.** a\n\n**Decision.** b\n\n**Cost.** c\n",
  },
];

const offencesIn = (text: string, path = "hub/a.ts"): string[] =>
  citationOffences([...PAGES, { path, text }]).map((offence) => `${offence.line}: ${offence.what}`);

describe("the repository", () => {
  const texts = repositoryTexts();

  it.each([
    "README.md",
    "docs/maas.md",
    "hub/main.ts",
    "cloud-init/parts/library.sh",
    ".ci/run",
    "hub/ui/docs-page.ts",
  ])("is read: %s", (path) => {
    expect(texts.map((text) => text.path)).toContain(path);
  });

  it("has no citation and no link that leads nowhere", () => {
    expect(repositoryOffences(texts)).toEqual([]);
  });
});

describe("a citation", () => {
  it.each(FORMS.map(({ name }) => name))("of %s without its heading is found", (name) => {
    expect(offencesIn(`/** Text (${cite(name, "99")}). */`)).toEqual([`1: ${name} 99: no such heading`]);
  });

  it.each([
    ["of a decision", `x ${cite("decision", "F9")}.`, [`1: ${cite("decision", "F9")}: no such page`]],
    [
      "of several decisions",
      cite("decisions", ["F1", "F2", "F3"].join(", ")),
      [`1: ${cite("decision", "F2")}`, `1: ${cite("decision", "F3")}`],
    ],
    ["of a decision by its id alone", `x (${"F1"}).`, [`1: ${"F1"}: cite it as ${cite("decision", "F1")}`]],
    [
      "of a decision that is not here, in brackets",
      `x (${"F9"})`,
      [`1: ${"F9"}: cite it as ${cite("decision", "F9")}`],
    ],
    ["of a document that is not here", cite("contract", "2.11"), [`1: ${cite("contract", "2.11")}: cite`]],
    ["of what was observed elsewhere", cite("maas-observed", "12"), [`1: ${cite("maas-observed", "12")}: cite`]],
    [
      "in a list",
      `(${cite("lifecycle", "4.16, 4.98 and 4.99")})`,
      [`1: ${cite("lifecycle", "4.98")}`, `1: ${cite("lifecycle", "4.99")}`],
    ],
    [
      "over two lines of a comment",
      `a\n * b (${cite("state", "\n * model 9.9")})`,
      [`2: ${cite("state model", "9.9")}`],
    ],
    ["whose heading stands in a block of code", cite("maas", "7"), [`1: ${cite("maas", "7")}`]],
    ["whose heading only begins with its digit", cite("maas", "9"), [`1: ${cite("maas", "9")}`]],
    ["of half of a number", cite("maas", "2.1"), [`1: ${cite("maas", "2.1")}`]],
  ])("%s is found", (_what, text, expected) => {
    const found = offencesIn(text);
    expect(found).toHaveLength(expected.length);
    for (const [at, begin] of expected.entries()) expect(found[at]).toMatch(begin);
  });

  it.each([
    cite("lifecycle", "4.16."),
    `${cite("state model", "3.2")}: ${cite("decision", "F1")})`,
    cite("maas", "2.11, trap 9"),
    "MAAS 3.5.12 and maas_machines 9",
    "[F1](decisions/F1-breaker.md), key F1-x, X9 (X9) and `F1`",
  ])("that leads somewhere is not reported: %s", (text) => {
    expect(offencesIn(text)).toEqual([]);
  });
});

describe("a link", () => {
  const linked = (text: string, path = "docs/a.md"): string[] =>
    linkOffences([...PAGES, { path, text }], (file) => PAGES.some((page) => page.path === file) || file === path).map(
      ({ line, what }) => `${line}: ${what}`,
    );

  it.each([
    ["to no file", "[a](b.md)", `1: ${DOCS}/b.md: no such file`],
    ["to no heading", "x\n[a](maas.md#211-net)", `2: ${DOCS}/maas.md#211-net: no such heading`],
    ["to no heading of its own page", "# Here\n[a](#there)", `2: ${DOCS}/a.md#there: no such heading`],
    ["to a page by its path", `see ${DOCS}/b.md`, `1: ${DOCS}/b.md: no such file`],
    ["to a source by its path", `see \`${"hub"}/b.ts\``, `1: ${"hub"}/b.ts: no such file`],
  ])("%s is found", (_what, text, expected) => {
    expect(linked(text)).toEqual([expected]);
  });

  it("to a file, a heading or another site is not reported", () => {
    const text = "# A `b`, c\n[a](#a-b-c) [b](maas.md#211-network) [c](./spec/repair.md) [d](https://x.example/y.md)";
    expect(linked(text)).toEqual([]);
    expect(linked("## A\n## A\n[the second](#a-1)")).toEqual([]);
    expect(linked("`[a](b.md)` as code", "docs/a.ts")).toEqual([]);
  });
});

describe("a decision", () => {
  const [list, good] = [PAGES[6], PAGES[7]];
  const text = good?.text ?? "";
  const decided = (path: string, page: string): string[] =>
    decisionOffences([...(list ? [list] : []), { path, text: page }]).map(({ what }) => what);

  it("with all its parts is not reported", () => {
    expect(decided("docs/decisions/F1-breaker.md", text)).toEqual([]);
  });

  it.each([
    ["of another name", "docs/decisions/breaker.md", text, "not named <ID>-<name>.md"],
    ["of another heading", "docs/decisions/F2-breaker.md", text, "does not begin with # F2 and a title"],
    ["that is not listed", "docs/decisions/F1-other.md", text, "not in the list README.md"],
    ["without a date", "docs/decisions/F1-breaker.md", text.replace("2026-", ""), "no date under the heading"],
    ["without its cost", "docs/decisions/F1-breaker.md", text.replace("**Cost.**", ""), "no part **Cost.**"],
  ])("%s is found", (_what, path, page, expected) => {
    expect(decided(path, page)).toEqual([expected]);
  });

  it("with the id of another page is found", () => {
    const [one, other] = ["breaker", "other"].map((name) => `${DOCS}/decisions/F1-${name}.md`) as [string, string];
    const pages = [...(list ? [list] : []), { path: one, text }, { path: other, text }];
    const found = decisionOffences(pages).map(({ path, what }) => `${path}: ${what}`);
    expect(found).toContain(`${one}: ${other} has the id ${"F1"} too`);
  });
});
