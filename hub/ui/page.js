// The script of the operators' page, which runs in the browser. The hub joins the files `page-*.js` and `page.js` into one script. The page reads
// everything from the public API every two seconds, and inserts the data as text, never as markup. The browser sends a cookie that no script can
// read, so the page itself holds no token.
const EVERY_MS = 2000;
const DEADLINE_MS = 30_000;
const fetchFrom = async (path, request) => {
  try {
    return await fetch(path, { ...request, signal: AbortSignal.timeout(DEADLINE_MS) });
  } catch {
    throw new Error("The hub does not answer.");
  }
};
const send = (path, body, headers = {}) =>
  fetchFrom(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
/** Returns the content of the hub's answer. The error for a refusal has the hub's own words. */
const readFrom = async (answer) => {
  if (answer.status === 204) return null;
  const read = await answer.json().catch(() => null);
  if (read === null) throw new Error(`Something other than the hub answers at its address (${answer.status}).`);
  if (answer.ok) return read;
  throw Object.assign(new Error(read.detail ?? answer.statusText), {
    status: answer.status,
    code: read.code,
    context: read.context,
  });
};
const ask = async (path, body, { repeatable = true } = {}) =>
  readFrom(
    body === undefined
      ? await fetchFrom(path)
      : await send(path, body, repeatable ? { "idempotency-key": crypto.randomUUID() } : {}),
  );

const LAST_ENDED = 20;
async function overview() {
  const [reconciliation, waiting, batches, nodes, ...kinds] = await Promise.all([
    reconciliationSections(),
    openApprovals(),
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
    ...waiting,
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
  if (kind === "tokens") return tokens();
  if (kind === "approvals") return id === undefined ? approvals() : approval(id);
  return kind === "nodes" && id !== undefined ? node(id) : overview();
};

/** Shows the hub's version, the name of the operator's token, and problems of the hub as a whole. */
function showHub({ version, agents, you, secret_store: store }) {
  const may = you.role === "viewer" ? ", who may only read" : "";
  $("about").textContent = `hub ${version}, agents connected here: ${agents}, you are ${you.name}${may}`;
  document.body.dataset.role = you.role;
  document.body.dataset.rights = you.rights.join(" ");
  const ail = store.code === "ok" ? [] : [make("code", `secret store: ${store.code}`), ` ${store.detail ?? ""}`];
  patchChildren($("ail"), make("p", ail));
}

/** The codes of the hub's answers to a person who has signed in and may see nothing. */
const NO_ROLE = ["no_role", "groups_left_out"];
let timer;
/**
 * The number of the newest update of the page; an older update changes nothing on the page. The page also raises `look` when its session ends, so that
 * an update of the ended session changes nothing.
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
    const [view, lines, hub] = await Promise.all([viewOf(hash), askedLines(), ask("/api/v1/admin/status")]);
    if (mine !== look) return;
    showHub(hub);
    show(hash, make("div", view));
    patchChildren($("asked"), lines);
    $("stale").textContent = "";
  } catch (error) {
    if (mine !== look) return;
    if (error.status === 401) return leave("Your session has ended. Sign in again.");
    if (shownHash !== hash || NO_ROLE.includes(error.code)) clear();
    const since = shownAt === null ? "" : ` The page shows the state of ${shownAt.toLocaleTimeString()}.`;
    $("stale").textContent = error.message + since;
    showSignedIn();
  }
  timer = setTimeout(loop, EVERY_MS);
}

function show(hash, view) {
  if (shownHash === hash) patchChildren($("view"), view);
  else {
    $("view").replaceChildren(...view.childNodes);
    if (shownHash !== null) {
      quiet();
      forgetEnded();
    }
    scrollTo(0, 0);
  }
  const title = hash.length > 2 ? $("view").querySelector("h2")?.textContent : undefined;
  document.title = title ? `${title} - Muster` : "Muster";
  shownHash = hash;
  shownAt = new Date();
  showSignedIn();
}

function showSignedIn() {
  $("view").hidden = false;
  $("login").hidden = true;
  $("find").hidden = false;
  $("leave").hidden = false;
  $("leave-all").hidden = false;
}

/** Removes the shown view from the page, because the page's address has changed or the session has ended. */
function clear() {
  $("view").replaceChildren();
  document.title = "Muster";
  shownHash = null;
  shownAt = null;
}

/** Shows the form for the sign-in in place of the data, with the reason. */
function leave(why) {
  clearTimeout(timer);
  look += 1;
  clear();
  quiet();
  say("ail");
  say("asked");
  asked.clear();
  $("find").reset();
  $("about").textContent = "";
  $("stale").textContent = why;
  for (const id of ["view", "find", "leave", "leave-all"]) $(id).hidden = true;
  $("login").hidden = false;
  void offer();
}

/** Offers the sign-in by the provider if the hub has one. The address says to which view the person returns. */
async function offer() {
  // A person may begin to type before the hub has answered.
  $("token").focus();
  const { provider } = await ask("/sign-in/state").catch(() => ({ provider: false }));
  $("by-provider").hidden = !provider;
  $("provider").href = `/sign-in?${new URLSearchParams({ to: location.hash || "#/" })}`;
  if (provider && $("token").value === "") $("provider").focus();
}

/** All tabs of the browser share one session. A tab tells the other tabs when the session begins or ends. */
const tabs = new BroadcastChannel("muster-session");
tabs.addEventListener("message", ({ data }) => {
  if (data === "ended") leave("You signed out in another tab.");
  else if (!$("login").hidden) void loop();
});

async function signIn(token) {
  try {
    await readFrom(await send("/sign-in/token", { token }));
    $("stale").textContent = "";
    tabs.postMessage("begun");
    await loop();
  } catch (error) {
    $("stale").textContent = error.message;
  }
}

async function signOut(everywhere) {
  try {
    await readFrom(await send("/sign-out", { everywhere }));
    tabs.postMessage("ended");
    leave(everywhere ? "You signed out everywhere." : "You signed out.");
  } catch (error) {
    $("stale").textContent = error.message;
  }
}

$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = $("token").value.trim();
  $("token").value = "";
  void signIn(token);
});
$("leave").addEventListener("click", () => signOut(false));
$("leave-all").addEventListener("click", () => signOut(true));
$("view").addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.target.classList.contains("make-token")) askToMake(event.target);
});
$("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const hostname = $("host").value.trim().toLowerCase();
  if (hostname !== "") location.hash = `#/list/nodes?${new URLSearchParams({ hostname })}`;
});
for (const id of ["view", "asked"])
  $(id).addEventListener("click", (event) => {
    const button = event.target.closest("button[data-path]");
    if (button !== null) askReason(button);
  });
addEventListener("hashchange", () => ($("login").hidden ? loop() : offer()));
const begin = async () => {
  $("token").focus();
  const { signed_in: signedIn } = await ask("/sign-in/state").catch(() => ({ signed_in: true }));
  if (signedIn) await loop();
  else await offer();
};
void begin();
