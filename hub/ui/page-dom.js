// Functions that build the elements of the operators' page and update them without losing focus, selection or scroll position.
// biome-ignore-all lint/correctness/noUnusedVariables: the other parts use them; the scripts are one
const $ = (id) => document.getElementById(id);
const make = (name, content, className) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (content !== undefined && content !== null)
    made.append(...[content].flat().map((part) => (part instanceof Node ? part : String(part))));
  return made;
};
const words = (name) => name.replaceAll("_", " ");
const kindOf = (status) => {
  if (["completed", "active", "reconciled"].includes(status)) return "good";
  if (["cancelled", "retired", "deleted", "ended"].includes(status)) return "over";
  return status.startsWith("failed") || status === "quarantined" || status === "offline" ? "bad" : "busy";
};
const tag = (status, kind = kindOf(status)) => make("span", words(status), `tag ${kind}`);
/** Shows a time in the time zone and format of the browser's user. */
const time = (iso) => (iso ? new Date(iso).toLocaleString() : "never");
/** Marks a table row by the target of its first link, so that the row keeps focus and selection when rows above it appear or disappear. */
const keyed = (row) => {
  const first = row.querySelector("a")?.getAttribute("href");
  if (first) row.dataset.key ??= first;
  return row;
};
/** Adds the column's heading to each cell of a table, for a window that is too narrow for columns. */
const headed = (heads) => (row) => {
  for (const [index, cell] of [...row.cells].entries()) cell.dataset.head = heads[index];
  return row;
};
const headOf = (head) => {
  const made = make("th", head);
  made.scope = "col";
  return made;
};
const table = (heads, rows) => {
  if (rows.length === 0) return make("p", "None.", "empty");
  return make("table", [
    make("thead", make("tr", heads.map(headOf))),
    make("tbody", rows.map(keyed).map(headed(heads))),
  ]);
};
const link = (href, text) => {
  const made = make("a", text);
  made.href = href;
  return made;
};
const section = (title, ...content) => {
  const made = make("section", [make("h2", title), ...content]);
  made.dataset.key = title;
  return made;
};
const shown = (name, value) => {
  if (value === null || value === undefined) return "-";
  if (/_(at|deadline|sync)$/.test(name)) return time(value);
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.join(", ") || "-";
  return typeof value === "object" ? JSON.stringify(value) : value;
};
const facts = (values) =>
  make(
    "dl",
    Object.entries(values).flatMap(([name, value]) => [make("dt", words(name)), make("dd", shown(name, value))]),
  );
/** The verbs of the operators' page that cannot be undone. */
const FINAL = [
  "remove",
  "release",
  "full_decommission",
  "force_release",
  "restart_clean",
  "force",
  "accept_drift",
  "re-enroll",
  "finish",
  "carry_out",
  "revoke",
];
/**
 * A button of the operators' page carries its action in its attributes. An update of the page may keep a row's button but change the button's
 * attributes, so that the button does what the row now shows.
 */
const actionButton = (path, title, verb, host, more = {}) => {
  const button = make(
    "button",
    words(verb),
    [more.first && "first", FINAL.includes(verb) && "final"].filter(Boolean).join(" "),
  );
  button.type = "button";
  button.title = title;
  button.ariaLabel = `${words(verb)} ${host}`;
  button.dataset.path = more.carries ? path : `${path}/${(more.verb ?? verb).replaceAll("_", "-")}`;
  button.dataset.body = JSON.stringify(more.body ?? {});
  // An approved request has its reason already.
  if (more.carries) button.dataset.carries = "true";
  if (more.plain) button.dataset.plain = "true";
  if (more.secret) button.dataset.secret = "true";
  return button;
};
const verbs = (...buttons) => make("div", buttons.flat(), "verbs");

const alike = (old, now) => old.nodeName === now.nodeName && old.dataset?.key === now.dataset?.key;
function patchChildren(old, now) {
  const next = [...now.childNodes];
  const keys = new Set(next.map((one) => one.dataset?.key));
  for (const one of [...old.children]) if (one.dataset.key && !keys.has(one.dataset.key)) one.remove();
  const known = new Map([...old.children].map((one) => [one.dataset.key, one]));
  for (const [index, one] of next.entries()) {
    const there = old.childNodes[index];
    const same = one.dataset?.key ? known.get(one.dataset.key) : there;
    if (same === undefined || !alike(same, one)) old.insertBefore(one, there ?? null);
    else {
      if (same !== there) old.insertBefore(same, there);
      patch(same, one);
    }
  }
  while (old.childNodes.length > next.length) old.lastChild.remove();
}
/** Changes the element `old` into `now` and leaves equal parts alone, so that focus, selection and scroll position survive an update of the page. */
function patch(old, now) {
  if (old.isEqualNode(now)) return;
  if (old.nodeType === Node.TEXT_NODE) {
    old.data = now.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!now.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  patchChildren(old, now);
}
