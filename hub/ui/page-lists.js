// The part of the operators' page for lists of any length: one page of a list at a time, with a link to the next page.
// biome-ignore-all lint/correctness/noUnusedVariables: the other parts use them; the scripts are one
/** The number of entries of a list that the operators' page shows at once. */
const FIRST_LOOK = 100;
/** The API path of each list's entries, and the function that shows them, by the list's name in the page's address. */
const LISTS = {
  nodes: {
    title: "Nodes",
    path: () => NODES,
    rows: (items) => nodeTable(items),
    statuses: [
      "active",
      "offline",
      "quarantined",
      "bootstrap_issued",
      "enrolling",
      "draining",
      "retired",
      "removing",
      "deleted",
    ],
  },
  drift: {
    title: "Nodes that differ from MAAS",
    path: () => `${DRIFT}/drift`,
    rows: (items) => driftTable(items),
  },
  allocations: {
    title: "Allocations",
    path: () => ALLOCATIONS,
    rows: (items) => allocationTable(items),
    statuses: ALLOCATION_STATUSES,
  },
  approvals: {
    title: "Requests that need a second person",
    path: () => APPROVALS,
    rows: async (items) => approvalTable(items, await siteNames()),
    by: "state",
    statuses: Object.keys(APPROVAL_STATES),
  },
  tokens: {
    title: "API tokens",
    path: () => TOKENS,
    rows: async (items) => tokenTable(items, await siteNames()),
  },
  records: { title: "Sanitization records", path: () => RECORDS, rows: (items) => recordTable(items) },
  ...Object.fromEntries(
    Object.entries(BATCHES).map(([name, { title, path }]) => [
      name,
      { title, path: () => path, rows: (items) => batchTable(items) },
    ]),
  ),
  ...Object.fromEntries(
    ["onboardings", "decommissions"].map((kind) => [
      kind,
      {
        title: `${KINDS[kind].title}s`,
        path: () => KINDS[kind].path,
        rows: (items) => operations(kind, items),
        statuses: [...FAILED, ...UNDER_WAY, ...ENDED],
      },
    ]),
  ),
};
const listLink = (name, query, text) => link(`#/list/${name}?${new URLSearchParams(query)}`, text);

/** Returns the note below a list of which the page shows only the first entries, with a link to all entries. */
const moreOf = (name, pages, query = {}) => {
  const cut = pages.filter((page) => page.next_cursor !== null);
  const by = LISTS[name].by ?? "status";
  return cut.map(({ items, [by]: status, ...page }) => {
    const all = status === undefined ? query : { ...query, [by]: status };
    const which = status === undefined ? "" : ` that are ${words(status).replaceAll(",", " or ")}`;
    return make("p", [
      `Only the first ${items.length}${which} are shown here. `,
      listLink(name, all, `All${which}`),
      ", ",
      listLink(name, { ...all, cursor: page.next_cursor }, `the next ${FIRST_LOOK}`),
    ]);
  });
};

async function list(name, asked) {
  const { title, path, rows, by = "status", statuses = [] } = LISTS[name];
  const query = Object.fromEntries(new URLSearchParams(asked));
  const { cursor, ...filter } = query;
  const { items, next_cursor: next } = await ask(`${path()}?${new URLSearchParams({ ...query, limit: FIRST_LOOK })}`);
  const choices = ["all", ...statuses].map((status) => {
    const { [by]: _, ...others } = filter;
    const choice = listLink(name, status === "all" ? others : { ...others, [by]: status }, words(status));
    if (status === (filter[by] ?? "all")) choice.ariaCurrent = "true";
    return choice;
  });
  const steps = [
    ...(cursor === undefined ? [] : [listLink(name, filter, "From the beginning")]),
    ...(next === null ? [] : [listLink(name, { ...filter, cursor: next }, `The next ${FIRST_LOOK}`)]),
  ];
  const narrowed = Object.entries(filter).map(([key, value]) => `, ${words(key)} ${words(value)}`);
  return [
    section(
      `${title}${narrowed.join("")}`,
      ...(statuses.length === 0 ? [] : [navigation("By status", choices)]),
      await rows(items),
      ...(steps.length === 0 ? [] : [navigation("Pages", steps)]),
    ),
  ];
}
const navigation = (name, links) => {
  const made = make("nav", links, "choices");
  made.ariaLabel = name;
  return made;
};
