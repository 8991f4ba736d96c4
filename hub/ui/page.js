// The script of the operators' page, which runs in the browser. The hub joins the files `page-*.js` and `page.js` into one script. The page reads
// everything from the public API every two seconds, and inserts the data as text, never as markup. The browser keeps the operator's token only for
// the open tab.
const EVERY_MS = 2000;
const DEADLINE_MS = 30_000;
let token = sessionStorage.getItem("muster-token") ?? "";
const fetchFrom = async (path, request) => {
  try {
    return await fetch(path, { ...request, signal: AbortSignal.timeout(DEADLINE_MS) });
  } catch {
    throw new Error("The hub does not answer.");
  }
};
const ask = async (path, body, { repeatable = true } = {}) => {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetchFrom(
    path,
    body === undefined
      ? { headers }
      : {
          method: "POST",
          headers: {
            ...headers,
            "content-type": "application/json",
            ...(repeatable ? { "idempotency-key": crypto.randomUUID() } : {}),
          },
          body: JSON.stringify(body),
        },
  );
  const read = await answer.json().catch(() => null);
  if (read === null) throw new Error(`Something other than the hub answers at its address (${answer.status}).`);
  if (answer.status === 401)
    throw Object.assign(
      new Error("The hub refuses this token. The first token is in the file admin-token of its state folder."),
      { status: 401 },
    );
  if (!answer.ok) throw Object.assign(new Error(read.detail ?? answer.statusText), { status: answer.status });
  return read;
};

const LAST_ENDED = 20;
async function overview() {
  const [reconciliation, batches, nodes, ...kinds] = await Promise.all([
    reconciliationSections(),
    newestBatches(),
    ask(`${NODES}?limit=${FIRST_LOOK}`),
    ...Object.keys(KINDS).map(async (kind) => ({
      kind,
      failed: await pagesOf(kind, FAILED, FIRST_LOOK),
      underWay: await pagesOf(kind, UNDER_WAY, FIRST_LOOK),
      ended: await pagesOf(kind, ENDED, LAST_ENDED),
    })),
  ]);
  const newest = (a, b) => b.updated_at.localeCompare(a.updated_at);
  const itemsOf = (pages) => pages.flatMap((page) => page.items).sort(newest);
  const each = (title, pages, ...more) =>
    kinds.map((one) =>
      section(
        `${KINDS[one.kind].title}s ${title}`,
        ...more.map((part) => part(itemsOf(pages(one)))),
        operations(one.kind, itemsOf(pages(one))),
        ...moreOf(one.kind, pages(one)),
      ),
    );
  const { breakers, drifted, sites } = reconciliation;
  return [
    ...breakers,
    ...each("that need a person", (one) => one.failed, classesOf),
    drifted,
    ...each("under way", (one) => one.underWay),
    sites,
    section("Nodes", nodeTable(nodes.items), ...moreOf("nodes", [nodes])),
    batches,
    ...kinds.map(({ kind, ended }) =>
      section(`${KINDS[kind].title}s that ended last`, operations(kind, itemsOf(ended).slice(0, LAST_ENDED))),
    ),
  ];
}

const viewOf = (hash) => {
  const [, kind, id] = hash.split("/");
  if (id !== undefined && Object.hasOwn(KINDS, kind)) return operation(kind, id);
  if (id !== undefined && Object.hasOwn(BATCHES, kind)) return batch(kind, id);
  if (kind === "list" && id !== undefined) {
    const [name, query] = id.split("?");
    if (Object.hasOwn(LISTS, name)) return list(name, query);
  }
  if (kind === "lifecycle" && id !== undefined) return lifecycle(...id.split("?"));
  if (kind === "authority") return authority();
  return kind === "nodes" && id !== undefined ? node(id) : overview();
};

/** Shows the hub's version, the name of the operator's token, and problems of the hub as a whole. */
function showHub({ version, agents, you, secret_store: store }) {
  const may = you.role === "viewer" ? ", who may only read" : "";
  $("about").textContent = `hub ${version}, agents connected here: ${agents}, you are ${you.name}${may}`;
  document.body.dataset.role = you.role;
  const ail = store.code === "ok" ? [] : [make("code", `secret store: ${store.code}`), ` ${store.detail ?? ""}`];
  patchChildren($("ail"), make("p", ail));
}

let timer;
/**
 * The number of the newest update of the page; an older update changes nothing on the page. The page also raises `look` when it deletes the
 * operator's token, so that an update with the deleted token changes nothing.
 */
let look = 0;
/** The address of the view that the page shows, and the time of the view's data. */
let shownHash = null;
let shownAt = null;
async function loop() {
  clearTimeout(timer);
  look += 1;
  const mine = look;
  const { hash } = location;
  try {
    const [view, hub] = await Promise.all([viewOf(hash), ask("/api/v1/admin/status")]);
    if (mine !== look) return;
    showHub(hub);
    show(hash, make("div", view));
    $("stale").textContent = "";
  } catch (error) {
    if (mine !== look) return;
    if (shownHash !== hash) clear();
    const since = shownAt === null ? "" : ` The page shows the state of ${shownAt.toLocaleTimeString()}.`;
    $("stale").textContent = error.status === 401 ? error.message : error.message + since;
    if (error.status === 401) return leave();
  }
  timer = setTimeout(loop, EVERY_MS);
}

function show(hash, view) {
  if (shownHash === hash) patchChildren($("view"), view);
  else {
    $("view").replaceChildren(...view.childNodes);
    if (shownHash !== null) quiet();
    scrollTo(0, 0);
  }
  const title = hash.length > 2 ? $("view").querySelector("h2")?.textContent : undefined;
  document.title = title ? `${title} - Muster` : "Muster";
  shownHash = hash;
  shownAt = new Date();
  $("view").hidden = false;
  $("login").hidden = true;
  $("find").hidden = false;
  $("leave").hidden = false;
}

/** Removes the shown view from the page, because the page's address has changed or the page no longer uses the operator's token. */
function clear() {
  $("view").replaceChildren();
  document.title = "Muster";
  shownHash = null;
  shownAt = null;
}

function leave() {
  clearTimeout(timer);
  look += 1;
  token = "";
  sessionStorage.removeItem("muster-token");
  clear();
  quiet();
  say("ail");
  $("find").reset();
  $("about").textContent = "";
  $("view").hidden = true;
  $("find").hidden = true;
  $("leave").hidden = true;
  $("login").hidden = false;
  $("token").focus();
}

$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  $("token").value = "";
  sessionStorage.setItem("muster-token", token);
  $("stale").textContent = "";
  void loop();
});
$("leave").addEventListener("click", () => {
  leave();
  $("stale").textContent = "";
});
$("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const hostname = $("host").value.trim().toLowerCase();
  if (hostname !== "") location.hash = `#/list/nodes?${new URLSearchParams({ hostname })}`;
});
$("view").addEventListener("click", (event) => {
  const button = event.target.closest("button[data-path]");
  if (button !== null) askReason(button);
});
addEventListener("hashchange", loop);
if (token === "") $("token").focus();
else void loop();
