/** The browser builds the list of operations on the documentation page from /api/v1/openapi.json, without any other file, and a form for each operation. */
export const docsPage = (nonce: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Muster API</title>
<style nonce="${nonce}">
  :root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
  body { margin: 2rem auto; max-width: 64rem; padding: 0 1rem; }
  h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; } code, pre { font: 13px/1.4 ui-monospace, monospace; }
  details { border-bottom: 1px solid #8884; padding: .4rem 0; } summary { cursor: pointer; }
  pre { overflow: auto; background: #8882; padding: .6rem; } h3 { font-size: 1rem; margin: 1rem 0 .4rem; } form { display: grid; gap: .5rem; max-width: 40rem; } label { display: grid; gap: .2rem; }
  input, textarea, button { font: inherit; padding: .3rem; } textarea { min-height: 6rem; font-family: ui-monospace, monospace; } button { justify-self: start; } form pre { min-width: 0; }
  .method { display: inline-block; min-width: 4.5rem; font-weight: 600; }
</style>
</head>
<body>
<main id="main">
<h1>Muster API</h1>
<p><a href="/console/">The console</a>. Each operation has a form that sends a request with the session of the console, after a <a href="/console/">sign-in</a> there.</p>
<p id="note" role="status"></p>
</main>
<script nonce="${nonce}">
const element = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
// Only an element that can have the focus can be scrolled without a mouse.
const scrolled = (text) => {
  const made = element("pre", text);
  made.tabIndex = 0;
  return made;
};
const label = (text, field) => {
  const made = element("label", text);
  made.append(field);
  return made;
};
// The browser adds the cookie of the console's session to a request from the documentation page, so the request may do what the signed-in person may
// do.
const tryIt = (method, path, operation) => {
  const form = element("form");
  const fields = operation.parameters.map((one) => {
    const field = element("input");
    field.required = one.required === true;
    form.append(label(one.name + " (" + one.in + ")", field));
    return { ...one, field };
  });
  const body = operation.requestBody ? element("textarea") : null;
  if (body) form.append(label("Body, as JSON", body));
  const answer = scrolled("");
  answer.hidden = true;
  form.append(element("button", method === "get" ? "Send" : "Send, with its effect"), answer);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = (where) => fields.filter((one) => one.in === where && one.field.value !== "");
    let address = path;
    for (const { name, field } of given("path")) address = address.replace("{" + name + "}", encodeURIComponent(field.value));
    const query = new URLSearchParams(given("query").map(({ name, field }) => [name, field.value]));
    const headers = Object.fromEntries(given("header").map(({ name, field }) => [name, field.value]));
    if (method !== "get") headers["content-type"] = "application/json";
    answer.hidden = false;
    answer.textContent = "The hub is asked.";
    try {
      const taken = await fetch(address + (query.size > 0 ? "?" + query : ""), { method: method.toUpperCase(), headers, ...(body && body.value !== "" ? { body: body.value } : {}) });
      const text = await taken.text();
      const isJson = (taken.headers.get("content-type") ?? "").includes("json");
      answer.textContent = taken.status + " " + taken.statusText + "\\n\\n" + (isJson ? JSON.stringify(JSON.parse(text), null, 2) : text);
    } catch (error) {
      answer.textContent = error.message;
    }
  });
  return form;
};
const operationOf = (method, path, operation, schemas) => {
  const named = (schema) => schema?.$ref ? schemas[schema.$ref.split("/").pop()] : schema;
  const details = element("details");
  const summary = element("summary");
  summary.append(element("span", method.toUpperCase(), "method"), element("code", path), " ", operation.summary);
  details.append(summary, element("p", operation.operationId + ", permission: " + operation["x-permission"]));
  for (const one of operation.parameters) details.append(element("p", one.in + " " + one.name + (one.required ? ", required" : "") + (one.description ? ": " + one.description : "")));
  const part = (title, schema) => schema && details.append(element("p", title), scrolled(JSON.stringify(named(schema), null, 2)));
  part("Body", operation.requestBody?.content["application/json"].schema);
  for (const [status, response] of Object.entries(operation.responses)) part("Answer " + status, response.content && Object.values(response.content)[0].schema);
  details.addEventListener("toggle", () => details.append(element("h3", "Try it"), tryIt(method, path, operation)), { once: true });
  return details;
};
const show = async () => {
  const api = await (await fetch("/api/v1/openapi.json")).json();
  const tags = new Map();
  for (const [path, methods] of Object.entries(api.paths)) for (const [method, operation] of Object.entries(methods)) {
    const [tag] = operation.tags;
    if (!tags.has(tag)) tags.set(tag, []);
    tags.get(tag).push(operationOf(method, path, operation, api.components.schemas));
  }
  for (const [tag, operations] of tags) document.getElementById("main").append(element("h2", tag), ...operations);
};
show().catch((error) => { document.getElementById("note").textContent = error.message; });
</script>
</body>
</html>
`;
