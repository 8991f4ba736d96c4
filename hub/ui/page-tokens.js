// The part of the operators' page for API tokens: who has one, what the token may do, and when it ends. Only a reader with the right sees the link.
// biome-ignore-all lint/correctness/noUnusedVariables: the other parts use them; the scripts are one
const TOKENS = "/api/v1/admin/tokens";
const ROLES = ["viewer", "operator", "admin", "provisioner", "tenant", "repair"];
const TOKEN_STATUSES = { valid: "good", expired: "over", revoked: "over" };
const TOKEN_DAYS = 90;
/** The name of the hub's first token, which the hub rotates only by its file. */
const FIRST_TOKEN = "admin";

function tokenActions({ id, name, status }) {
  if (status !== "valid") return [];
  const button = (title, verb, more) => actionButton(`${TOKENS}/${id}`, title, verb, `the token ${name}`, more);
  const rotated = `Show a new secret once, which expires in ${TOKEN_DAYS} days; the old secret stays valid for an hour`;
  return [
    ...(name === FIRST_TOKEN
      ? []
      : [button(rotated, "rotate", { plain: true, secret: true, body: { expires_in_days: TOKEN_DAYS } })]),
    button("End the token on every hub at once; programs with the token are refused", "revoke"),
  ];
}
function tokenRow(sites, one) {
  const row = make("tr", [
    make("td", one.last_four === null ? one.name : `${one.name} (...${one.last_four})`),
    make("td", one.role),
    make("td", one.site_ids === null ? "all" : one.site_ids.map((id) => sites.get(id) ?? id).join(", ")),
    make("td", one.tenant ?? ""),
    make("td", tag(one.status, TOKEN_STATUSES[one.status])),
    make("td", time(one.last_used_at)),
    make("td", time(one.expires_at)),
    make("td", one.created_by ?? ""),
    make("td", verbs(tokenActions(one))),
  ]);
  row.dataset.key = one.id;
  return row;
}
const TOKEN_HEADS = ["Token", "Role", "Sites", "Tenant", "Status", "Last used", "Expires", "Made by", "Actions"];
const tokenTable = (rows, sites) =>
  table(
    TOKEN_HEADS,
    rows.map((one) => tokenRow(sites, one)),
  );

/** A field with its label. The element keeps what the reader has typed while the page updates. */
function field(name, label, element, about = {}) {
  element.id = `token-${name}`;
  element.name = name;
  for (const [attribute, value] of Object.entries(about)) element.setAttribute(attribute, value);
  // A list has its first option selected until it is a list of several choices.
  if (about.multiple !== undefined) element.selectedIndex = -1;
  element.className = "field-value";
  const text = make("label", label, "field-name");
  text.htmlFor = element.id;
  return make("p", [text, element], "field");
}
const option = (value, text = value) => {
  const made = make("option", text);
  made.value = value;
  return made;
};
function tokenForm(sites) {
  const form = make(
    "form",
    [
      field("name", "Name", make("input"), { required: "", maxlength: "63", autocomplete: "off", spellcheck: "false" }),
      field(
        "role",
        "Role",
        make(
          "select",
          ROLES.map((role) => option(role)),
        ),
      ),
      field(
        "site_ids",
        "Sites (none: the whole hub)",
        make(
          "select",
          [...sites].map(([id, name]) => option(id, name)),
        ),
        { multiple: "" },
      ),
      field("tenant", "Tenant, for the roles tenant and repair", make("input"), { autocomplete: "off" }),
      field("expires_in_days", "Days until it expires", make("input"), {
        type: "number",
        min: "1",
        max: "366",
        value: String(TOKEN_DAYS),
        required: "",
      }),
      make("button", "make the token"),
    ],
    "make-token",
  );
  return form;
}
/** Asks whether to make the token that the form describes. */
function askToMake(form) {
  const { name, role, tenant, expires_in_days: days, site_ids: sites } = form.elements;
  const chosen = [...sites.selectedOptions].map(({ value }) => value);
  const body = {
    name: name.value.trim(),
    role: role.value,
    expires_in_days: Number(days.value),
    ...(chosen.length === 0 ? {} : { site_ids: chosen }),
    ...(tenant.value.trim() === "" ? {} : { tenant: tenant.value.trim() }),
  };
  const where = chosen.length === 0 ? "the whole hub" : [...sites.selectedOptions].map(({ text }) => text).join(", ");
  askReason({
    title: `A token of the role ${body.role} for ${where}, which expires in ${body.expires_in_days} days; it is shown once`,
    ariaLabel: `make the token ${body.name}`,
    textContent: "make",
    className: "first",
    dataset: { path: TOKENS, body: JSON.stringify(body), secret: "true", plain: "true" },
  });
}

async function tokens() {
  const [sites, page] = await Promise.all([siteNames(), ask(`${TOKENS}?limit=${FIRST_LOOK}`)]);
  return [
    section("API tokens", tokenTable(page.items, sites), ...moreOf("tokens", [page])),
    section("Make a token", tokenForm(sites)),
  ];
}
