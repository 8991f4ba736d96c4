// The part of the operators' page for requests that need the approval of a second person: who asks, what the request does, and what the reader may do.
// biome-ignore-all lint/correctness/noUnusedVariables: the other parts use them; the scripts are one
const APPROVALS = "/api/v1/admin/approvals";
/** The states of an approval, each with the colour of its tag. */
const APPROVAL_STATES = {
  pending: "busy",
  approved: "good",
  used: "over",
  refused: "bad",
  withdrawn: "over",
  expired: "over",
};
const OPEN_APPROVALS = "pending,approved";
/** The most open requests that the overview shows. */
const FIRST_APPROVALS = 20;
/** The operations that the page can carry out once they are approved, each with its path in the API. All of them are POST. */
const CARRIED_OUT = {
  adoptMachines: "/api/v1/admin/maas-sites/{id}/adoptions",
  bindNodeMachine: "/api/v1/admin/nodes/{id}/bind-machine",
  cleanNodeStorage: "/api/v1/admin/nodes/{id}/storage-cleanup",
  createDecommissionBatch: "/api/v1/admin/decommissions/batch",
  createMaasSiteProfile: "/api/v1/admin/maas-sites/{id}/profiles",
  createOnboarding: "/api/v1/admin/onboardings",
  createOnboardingBatch: "/api/v1/admin/onboardings/batch",
  decommissionNode: "/api/v1/admin/nodes/{id}/decommission",
  forceDecommission: "/api/v1/admin/decommissions/{id}/force",
  releaseNode: "/api/v1/admin/nodes/{id}/release",
  removeNode: "/api/v1/admin/nodes/{id}/remove",
  restartCleanOnboarding: "/api/v1/admin/onboardings/{id}/restart-clean",
  unbindNodeMachine: "/api/v1/admin/nodes/{id}/unbind-machine",
};
/** The hub may have approvals of operations that this page does not know, for example of a newer hub. */
const mayCarryOut = ({ operation }) => Object.hasOwn(CARRIED_OUT, operation);
const commandOf = ({ operation, id }) =>
  `muster ${operation.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} ... --approval ${id}`;

const approvalName = ({ id, requested_by: by }) => `request ${id.slice(0, 8)} of ${by}`;
const approvalLink = (one, text) => link(`#/approvals/${one.id}`, text);
const approvalTag = ({ state }) => tag(state, APPROVAL_STATES[state]);

/** A button that does nothing but say why. It can have the focus, so a reader with a keyboard or a screen reader finds the reason too. */
const blockedButton = (verb, what, why) => {
  const button = make("button", words(verb));
  button.type = "button";
  button.ariaLabel = `${words(verb)} ${what}`;
  button.ariaDisabled = "true";
  button.title = why;
  return button;
};

/** Returns the buttons for what the reader may do with a request now. */
function approvalActions(one) {
  const { id, state, does, requested_by_you: own, cannot_grant: why } = one;
  const button = (title, verb, more) => actionButton(`${APPROVALS}/${id}`, title, verb, approvalName(one), more);
  const refuse = own
    ? button("Withdraw the request, which nobody can carry out then", "withdraw", { verb: "refuse" })
    : button(`Refuse the request: ${does}`, "refuse");
  if (state === "pending") {
    const grant = button(`Let ${one.requested_by} do once: ${does}`, "approve", { verb: "grant", first: true });
    if (why === null) return [grant, refuse];
    const shown = own ? "You asked for this request, so somebody else must approve it." : why;
    return [blockedButton("approve", approvalName(one), shown), refuse, make("span", shown, "why-not")];
  }
  if (state !== "approved") return [];
  // A second person whose session has ended may have to approve the request again, or another person does.
  if (!own && why === null)
    return [refuse, button(`Let ${one.requested_by} do once: ${does}`, "approve_again", { verb: "grant" })];
  if (!own) return [refuse];
  if (mayCarryOut(one)) return [button(does, "carry_out", { first: true, carries: true }), refuse];
  return [make("span", ["Send the request again: ", make("code", commandOf(one))], "why-not"), refuse];
}

/** Says how the request stands. */
function standingOf(one) {
  const { state, requested_by_you: own, decided_by: by, decision_reason: reason } = one;
  const decided = by === null ? "" : ` by ${by}, ${time(one.decided_at)}: ${reason}`;
  if (state === "pending") return `waits for a second person until ${time(one.expires_at)}`;
  if (state === "approved")
    return `approved${decided}. ${own ? "You" : one.requested_by} can carry it out once until ${time(one.expires_at)}`;
  if (state === "used") return `carried out, ${time(one.used_at)}; approved${decided}`;
  if (state === "expired") return `expired, ${time(one.expires_at)}: nobody carried it out in time`;
  return `${state}${decided}`;
}

const approvalRow = (sites) => (one) =>
  make("tr", [
    make("td", approvalLink(one, time(one.requested_at))),
    make("td", one.requested_by_you ? `${one.requested_by} (you)` : one.requested_by),
    make("td", approvalTag(one)),
    make("td", sites.get(one.site_id) ?? one.site_id),
    make("td", one.does, "why"),
    make("td", standingOf(one), "why"),
    make("td", verbs(approvalActions(one))),
  ]);
const approvalTable = (rows, sites) =>
  table(
    ["Asked", "By", "State", "Site", "What the request does", "How it stands", "Actions"],
    rows.map(approvalRow(sites)),
  );

/** The overview has this section only if a request is open. */
async function openApprovals() {
  const open = await ask(`${APPROVALS}?state=${OPEN_APPROVALS}&limit=${FIRST_APPROVALS}`);
  if (open.items.length === 0) return [];
  return [
    section(
      "Requests that need a second person",
      approvalTable(open.items, await siteNames()),
      ...moreOf("approvals", [{ ...open, state: OPEN_APPROVALS }]),
    ),
  ];
}

/** Shows the open requests first, and then those that are over. */
async function approvals() {
  const over = Object.keys(APPROVAL_STATES).filter((state) => !OPEN_APPROVALS.split(",").includes(state));
  const [sites, open, ended] = await Promise.all([
    siteNames(),
    ...[OPEN_APPROVALS, over.join(",")].map((state) => ask(`${APPROVALS}?state=${state}&limit=${FIRST_LOOK}`)),
  ]);
  return [
    section(
      "Requests that need a second person",
      approvalTable(open.items, sites),
      ...moreOf("approvals", [{ ...open, state: OPEN_APPROVALS }]),
    ),
    section(
      "Requests that are over",
      approvalTable(ended.items, sites),
      ...moreOf("approvals", [{ ...ended, state: over.join(",") }]),
    ),
  ];
}

/** Returns a link to the node or the decommission that the request names in its path. */
const subjectOf = ({ operation, params }) => {
  const [, kind] = /^\/api\/v1\/admin\/(nodes|decommissions)\/\{id\}/.exec(CARRIED_OUT[operation] ?? "") ?? [];
  return kind === undefined
    ? []
    : [make("p", link(`#/${kind}/${params.id}`, kind === "nodes" ? "The node" : "The decommission"))];
};

async function approval(id) {
  const [one, sites] = await Promise.all([ask(`${APPROVALS}/${id}`), siteNames()]);
  const { because, params, body, does, requested_by_you: _, cannot_grant: __, ...rest } = one;
  const asks = because.map(({ entry, profile }) => `${words(entry)} (profile ${profile})`).join(", ");
  const name = approvalName(one);
  return [
    section(
      name.replace(/^r/, "R"),
      make("p", [approvalTag(one), " ", standingOf(one)]),
      make("p", does),
      make("p", `A second person is asked for by: ${asks}`),
      verbs(approvalActions(one)),
      ...subjectOf(one),
    ),
    section("The request", facts({ ...params, ...(body ?? {}) })),
    section("Record", facts({ site: sites.get(one.site_id), ...rest })),
  ];
}

/** Sends an approved request again, as its requester, with its approval. */
async function carryOut(path) {
  const { id, operation, params, body } = await ask(path);
  const at = CARRIED_OUT[operation].replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name]));
  const headers = { "idempotency-key": crypto.randomUUID(), "muster-approval": id };
  return readFrom(await send(at, body ?? {}, headers));
}

/** The requests of this tab that need a second person, each with what the reader wanted to do and the state that the page has shown last. */
const asked = new Map();
const MOST_ASKED = 5;
function remember(id, what) {
  asked.set(id, { what, state: "pending" });
  for (const old of [...asked.keys()].slice(0, -MOST_ASKED)) asked.delete(old);
}
/** Forgets the requests that are over, when the reader goes on to another view. */
function forgetEnded() {
  for (const [id, { state }] of asked) if (!OPEN_APPROVALS.split(",").includes(state)) asked.delete(id);
}

/** Shows on every view how the requests of this tab stand, so that the reader can go on as soon as a second person has approved them. */
async function askedLines() {
  const lines = [];
  for (const [id, { what }] of asked) {
    const one = await ask(`${APPROVALS}/${id}`);
    asked.set(id, { what, state: one.state });
    if (one.state === "used") asked.delete(id);
    else {
      const standing = [
        `${what} needs a second person: `,
        approvalLink(one, approvalName(one)),
        `, ${standingOf(one)}.`,
      ];
      const working = approvalActions(one).filter((part) => part.dataset.path !== undefined);
      const line = make("div", [make("p", standing), verbs(working)], "asked");
      line.dataset.key = id;
      lines.push(line);
    }
  }
  return make("div", lines);
}
