/** Finds the citations in a text, and the headings to which citations must lead. */

export interface Text {
  readonly path: string;
  readonly text: string;
}

export interface Offence {
  readonly path: string;
  readonly line: number;
  readonly what: string;
}

interface Form {
  readonly name: string;
  readonly words: string;
  readonly pages: RegExp;
}

export const FORMS: readonly Form[] = [
  { name: "lifecycle", words: "[Ll]ifecycle", pages: /^docs[/]spec[/]lifecycle-[^/]+[.]md$/ },
  { name: "state model", words: "[Ss]tateGAPmodel", pages: /^docs[/]spec[/]state-model[.]md$/ },
  { name: "repair", words: "[Rr]epair", pages: /^docs[/]spec[/]repair[.]md$/ },
  {
    name: "external provisioning",
    words: "[Ee]xternalGAPprovisioning",
    pages: /^docs[/]spec[/]external-provisioning[.]md$/,
  },
  { name: "architecture", words: "[Aa]rchitecture", pages: /^docs[/]architecture[.]md$/ },
  { name: "maas", words: "maas", pages: /^docs[/]maas[.]md$/ },
];

/** Old forms of citation, which texts may no longer use, each with the form to use instead. */
const RETIRED: Readonly<Record<string, string>> = {
  contract: "cite `maas N.N` of docs/maas.md",
  "maas-observed": "cite `maas 12` of docs/maas.md",
};

/** Matches the gap between two words of a citation: a blank, or a line end with the comment mark of the next line. */
const GAP = String.raw`(?: |[ \t]*\r?\n[ \t]*(?:[*]|//|#|--|>)?[ \t]*)`;
const NUMBER = String.raw`\d+(?:[.]\d+)*`;
const ID = String.raw`[A-Z]\d+`;

const listed = (word: string, item: string): RegExp =>
  new RegExp(
    String.raw`(?<![\w.-])(?:${word.replaceAll("GAP", GAP)})${GAP}(${item}(?:(?:,|${GAP}(?:and|or|to))${GAP}(?:(?:and|or)${GAP})?${item})*)(?![\w])`,
    "g",
  );

const lineOf = (text: string, index: number): number => text.slice(0, index).split("\n").length;

function prose(text: string): string {
  let fence = "";
  return text
    .split("\n")
    .map((line) => {
      const mark = /^\s*(```+|~~~+)/.exec(line)?.[1]?.slice(0, 3) ?? "";
      if (mark !== "" && (fence === "" || fence === mark)) {
        fence = fence === "" ? mark : "";
        return "";
      }
      return fence === "" ? line : "";
    })
    .join("\n");
}

const headingsOf = (page: Text): readonly string[] =>
  [...prose(page.text).matchAll(/^#{1,6} +(.+?) *$/gm)].map(([, heading = ""]) => heading);

const numbersOf = (pages: readonly Text[]): ReadonlySet<string> =>
  new Set(pages.flatMap(headingsOf).flatMap((heading) => /^(\d+(?:[.]\d+)*)[.]?(?= |$)/.exec(heading)?.[1] ?? []));

/** If several headings of a page have the same words, GitHub appends `-1` to the second anchor and `-2` to the third. */
function anchorsOf(page: Text): ReadonlySet<string> {
  const seen = new Map<string, number>();
  return new Set(
    headingsOf(page).map((heading) => {
      const words = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
      const anchor = words.replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
      const times = seen.get(anchor) ?? 0;
      seen.set(anchor, times + 1);
      return times === 0 ? anchor : `${anchor}-${times}`;
    }),
  );
}

const DECISION_PAGE = /^docs[/]decisions[/]([A-Z]\d+)-[a-z0-9]+(?:-[a-z0-9]+)*[.]md$/;

function decisionsOf(texts: readonly Text[]): ReadonlySet<string> {
  return new Set(texts.flatMap(({ path }) => DECISION_PAGE.exec(path)?.[1] ?? []));
}

function citedIn(source: Text, word: string, item: string): { readonly cited: string; readonly line: number }[] {
  return [...source.text.matchAll(listed(word, item))].flatMap((match) =>
    [...(match[1] ?? "").matchAll(new RegExp(item, "g"))].map(([cited]) => ({
      cited,
      line: lineOf(source.text, match.index),
    })),
  );
}

/**
 * Matches the id of a decision without the word "decision" before it. A decision's id in quotes, in a link, in a path or in a heading is no citation.
 */
const BARE = /(?<![\w./"'`[-]|# )[A-Z]\d{1,2}(?![\w"'`\]-])/g;

/** Finds the ids of existing decisions without the word "decision" before them, and any id alone in brackets. */
function bareIn(source: Text, decisions: ReadonlySet<string>): Offence[] {
  const letters = new Set([...decisions].map((id) => id[0]));
  const cited = [...source.text.matchAll(listed("[Dd]ecisions?", ID))].map(
    (match) => [match.index, match.index + match[0].length] as const,
  );
  return [...source.text.matchAll(BARE)].flatMap(({ 0: id, index }) => {
    const inBrackets = source.text[index - 1] === "(" && source.text[index + id.length] === ")";
    const isDecision = decisions.has(id) || (inBrackets && letters.has(id[0] ?? ""));
    if (!isDecision || cited.some(([from, to]) => index >= from && index < to)) return [];
    return [{ path: source.path, line: lineOf(source.text, index), what: `${id}: cite it as decision ${id}` }];
  });
}

/** Finds citations of missing headings, decision ids without the word "decision", and citations in old forms. */
export function citationOffences(texts: readonly Text[]): Offence[] {
  const decisions = decisionsOf(texts);
  const forms = FORMS.map((form) => ({
    ...form,
    numbers: numbersOf(texts.filter(({ path }) => form.pages.test(path))),
  }));
  return texts.flatMap((source) => [
    ...forms.flatMap((form) =>
      citedIn(source, form.words, NUMBER)
        .filter(({ cited }) => !form.numbers.has(cited))
        .map(({ cited, line }) => ({ path: source.path, line, what: `${form.name} ${cited}: no such heading` })),
    ),
    ...citedIn(source, "[Dd]ecisions?", ID)
      .filter(({ cited }) => !decisions.has(cited))
      .map(({ cited, line }) => ({ path: source.path, line, what: `decision ${cited}: no such page` })),
    ...bareIn(source, decisions),
    ...Object.entries(RETIRED).flatMap(([word, instead]) =>
      citedIn(source, word, NUMBER).map(({ cited, line }) => ({
        path: source.path,
        line,
        what: `${word} ${cited}: ${instead}`,
      })),
    ),
  ]);
}

/** Resolves the path `to`, seen from the folder of the file `from`. */
function resolved(from: string, to: string): string {
  const url = new URL(to, `file:///${from}`);
  return decodeURIComponent(url.pathname).replace(/^[/]/, "").replace(/[/]$/, "");
}

/**
 * Matches the paths and path patterns by which a text names files of the repository. A path in quotes does not match `PATHS`, because the path need
 * not be a file of the repository. A path that ends in `.js` does not match `PATHS`, because the path names a built file.
 */
const NAMED =
  /(?<![\w./"'{-])((?:docs|agent|hub|shared|cloud-init|packaging|test)[/][\w/.*-]+[.](?:md|json|ts|mjs|sh|service))(?![\w*])(?:#([\w-]+))?/g;

/** Finds links to missing files or headings, and missing files that comments and docs name. */
export function linkOffences(texts: readonly Text[], exists: (path: string) => boolean): Offence[] {
  const anchors = new Map(
    texts.filter(({ path }) => path.endsWith(".md")).map((page) => [page.path, anchorsOf(page)] as const),
  );
  const wrong = (path: string, line: number, target: string, anchor: string | undefined): Offence[] => {
    if (!exists(target)) return [{ path, line, what: `${target}: no such file` }];
    const missing = anchor !== undefined && anchors.has(target) && !anchors.get(target)?.has(anchor);
    return missing ? [{ path, line, what: `${target}#${anchor}: no such heading` }] : [];
  };
  return texts.flatMap(({ path, text }) => {
    const page = path.endsWith(".md") ? prose(text) : "";
    const links = [...page.matchAll(/\]\((?![a-z][a-z+.-]*:)([^)#\s]*)(?:#([^)\s]+))?\)/g)];
    const named = [...text.matchAll(NAMED)];
    return [
      ...links.flatMap((link) =>
        wrong(path, lineOf(page, link.index), link[1] ? resolved(path, link[1]) : path, link[2]),
      ),
      ...named.flatMap((name) => wrong(path, lineOf(text, name.index), name[1] ?? "", name[2])),
    ];
  });
}

const PARTS = ["**Context.**", "**Decision.**", "**Cost.**"];

/**
 * Reports each page of `docs/decisions` whose heading lacks its id and title, or that lacks its date, a required part, or its link in the README, and each
 * page whose id another page has too.
 */
export function decisionOffences(texts: readonly Text[]): Offence[] {
  const list = texts.find(({ path }) => path === "docs/decisions/README.md");
  return texts.flatMap(({ path, text }) => {
    if (!/^docs[/]decisions[/]/.test(path) || path === list?.path) return [];
    const id = DECISION_PAGE.exec(path)?.[1];
    const says = (what: string, line = 1): Offence => ({ path, line, what });
    if (id === undefined) return [says("not named <ID>-<name>.md")];
    const title = new RegExp(`^# ${id} (.+)\n`).exec(text)?.[1];
    if (title === undefined) return [says(`does not begin with # ${id} and a title`)];
    return [
      ...(/^\d{4}-\d\d-\d\d(?:[.,;].*)?$/.test(text.split("\n")[2] ?? "")
        ? []
        : [says("no date under the heading", 3)]),
      ...PARTS.filter((part) => !text.includes(`\n${part}`)).map((part) => says(`no part ${part}`)),
      ...(list?.text.includes(`(${path.slice("docs/decisions/".length)})`) ? [] : [says("not in the list README.md")]),
      ...texts
        .filter((other) => other.path !== path && DECISION_PAGE.exec(other.path)?.[1] === id)
        .map((other) => says(`${other.path} has the id ${id} too`)),
    ];
  });
}
