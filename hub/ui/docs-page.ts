/** The browser builds the list of operations on the documentation page from /api/v1/openapi.json, without any other file. */
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
  pre { overflow: auto; background: #8882; padding: .6rem; } .method { display: inline-block; min-width: 4.5rem; font-weight: 600; }
</style>
</head>
<body>
<h1>Muster API</h1>
<p id="note" role="status"></p>
<main id="main"></main>
<script nonce="${nonce}">
const element = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
const operationOf = (method, path, operation, schemas) => {
  const named = (schema) => schema?.$ref ? schemas[schema.$ref.split("/").pop()] : schema;
  const details = element("details");
  const summary = element("summary");
  summary.append(element("span", method.toUpperCase(), "method"), element("code", path), " ", operation.summary);
  details.append(summary, element("p", operation.operationId + ", permission: " + operation["x-permission"]));
  for (const one of operation.parameters) details.append(element("p", one.in + " " + one.name + (one.required ? ", required" : "") + (one.description ? ": " + one.description : "")));
  const part = (title, schema) => schema && details.append(element("p", title), element("pre", JSON.stringify(named(schema), null, 2)));
  part("Body", operation.requestBody?.content["application/json"].schema);
  for (const [status, response] of Object.entries(operation.responses)) part("Answer " + status, response.content && Object.values(response.content)[0].schema);
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
