/** The name of a metric in a PromQL expression, with the labels that the expression compares with a text. */
export interface Selector {
  readonly name: string;
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[];
}

const KEYWORDS = new Set([
  "by",
  "without",
  "on",
  "ignoring",
  "group_left",
  "group_right",
  "offset",
  "and",
  "or",
  "unless",
  "bool",
]);
const LABELS = /\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;

/** Returns the metrics that a PromQL expression names. */
export function selectorsOf(expression: string): Selector[] {
  const bare = expression.replace(LABELS, " ").replace(/\[[^\]]*\]|\boffset\s+\w+/g, " ");
  return [...bare.matchAll(/([a-zA-Z_:][\w:]*)\s*(\{[^}]*\})?(\s*\()?/g)].flatMap(
    ([, name = "", braces = "", call]) => {
      if (call !== undefined || KEYWORDS.has(name) || /^\d/.test(name)) return [];
      const matchers = [...braces.matchAll(/(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g)].map(
        ([, label = "", operator = "", value = ""]) => ({ label, operator, value }),
      );
      return [{ name, matchers }];
    },
  );
}

/** Returns the labels by which a PromQL expression groups or joins. */
export const groupedLabelsOf = (expression: string): string[] =>
  [...expression.matchAll(LABELS)]
    .flatMap(([, , list = ""]) => list.split(",").map((label) => label.trim()))
    .filter(Boolean);
