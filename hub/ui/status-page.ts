/**
 * The operators' page: nodes, and onboardings with what each waits for, read from the public API every two seconds. One self-contained document;
 * every value goes in as text, never as markup. The token is kept for the tab only.
 */
export const statusPage = (nonce: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Muster</title>
<style nonce="${nonce}">
  :root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
  [hidden] { display: none !important; }
  body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
  h1 { font-size: 1.4rem; margin: 0 0 1rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
  table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }
  th { font-weight: 600; } td.why { max-width: 34rem; }
  .tag { border-radius: .6rem; padding: .05rem .5rem; background: #8883; white-space: nowrap; }
  .good { background: #1a7f3740; } .bad { background: #cf222e40; } .busy { background: #0969da40; }
  progress { width: 7rem; vertical-align: middle; } #note { min-height: 1.5em; color: #cf222e; }
  form { display: flex; gap: .5rem; align-items: center; } input { flex: 1; max-width: 30rem; padding: .3rem; }
  .empty { opacity: .7; }
</style>
</head>
<body>
<h1>Muster</h1>
<form id="login"><label for="token">Admin token</label><input id="token" type="password" autocomplete="off" spellcheck="false"><button>Show</button></form>
<p id="note" role="status"></p>
<main id="main" hidden>
  <h2>Onboardings</h2>
  <table><thead><tr><th>Host</th><th>Status</th><th>Stage</th><th>What it waits for, or why it failed</th></tr></thead><tbody id="onboardings"></tbody></table>
  <h2>Nodes</h2>
  <table><thead><tr><th>Host</th><th>Status</th><th>Schedulable</th><th>SKU</th><th>Address</th><th>Agent</th><th>Last contact</th></tr></thead><tbody id="nodes"></tbody></table>
</main>
<script nonce="${nonce}">
const STAGES = 16;
const $ = (id) => document.getElementById(id);
const cell = (content, className) => {
  const td = document.createElement("td");
  if (className) td.className = className;
  td.append(content instanceof Node ? content : String(content ?? ""));
  return td;
};
const tag = (text, kind) => {
  const span = document.createElement("span");
  span.className = "tag " + kind;
  span.textContent = text;
  return span;
};
const kindOf = (status) => status === "completed" || status === "active" || status === "reconciled" ? "good" : status.startsWith("failed") || status === "quarantined" || status === "offline" ? "bad" : "busy";
const rows = (id, items, toCells) => {
  const empty = document.createElement("tr");
  empty.append(cell("None yet", "empty"));
  $(id).replaceChildren(...(items.length === 0 ? [empty] : items.map((item) => {
    const tr = document.createElement("tr");
    tr.append(...toCells(item));
    return tr;
  })));
};
let token = sessionStorage.getItem("muster-token") ?? "";
const ask = async (path) => {
  const answer = await fetch(path, { headers: { authorization: "Bearer " + token } });
  const body = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.detail ?? answer.statusText), { status: answer.status });
  return body;
};
const progressOf = (onboarding, order) => {
  const bar = document.createElement("progress");
  bar.max = STAGES;
  bar.value = kindOf(onboarding.status) === "good" ? STAGES : order.indexOf(onboarding.current_stage) + 1;
  const span = document.createElement("span");
  span.append(bar, " ", onboarding.current_stage, onboarding.current_attempt > 1 ? " (attempt " + onboarding.current_attempt + ")" : "");
  return span;
};
const ORDER = ["load_site_config","resolve_power_credentials","create_or_find_in_maas","commission_node","wait_for_ready","configure_storage","apply_roce_phase2","ensure_pxe_interface_auto","render_cloud_init","deploy_via_maas","wait_for_deployed","classify_deploy_failure","recover_for_datasource_retry","ensure_hardware_sync_configured","wait_for_hardware_sync_healthy","wait_for_agent_enrollment"];
const show = async () => {
  const [onboardings, nodes] = await Promise.all([ask("/api/v1/admin/onboardings?limit=200"), ask("/api/v1/admin/nodes?limit=200")]);
  rows("onboardings", onboardings.items, (one) => [cell(one.hostname), cell(tag(one.status, kindOf(one.status))), cell(progressOf(one, ORDER)), cell(one.error_message ? one.failure_class + "/" + one.error_code + ": " + one.error_message + " Next: " + one.next_action : one.waiting_for, "why")]);
  rows("nodes", nodes.items, (one) => [cell(one.hostname), cell(tag(one.status, kindOf(one.status))), cell(one.schedulable ? "yes" : one.unschedulable_reasons.join("; ")), cell(one.sku_id), cell(one.host), cell(one.agent_version), cell(one.last_agent_contact_at ? new Date(one.last_agent_contact_at).toLocaleTimeString() : "never")]);
  $("main").hidden = false;
  $("login").hidden = true;
};
let timer;
const loop = async () => {
  clearTimeout(timer);
  try {
    await show();
    $("note").textContent = "";
  } catch (error) {
    $("note").textContent = error.message;
    if (error.status === 401) {
      token = "";
      sessionStorage.removeItem("muster-token");
      $("main").hidden = true;
      $("login").hidden = false;
      return;
    }
  }
  timer = setTimeout(loop, 2000);
};
$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  sessionStorage.setItem("muster-token", token);
  loop();
});
if (token !== "") loop();
</script>
</body>
</html>
`;
