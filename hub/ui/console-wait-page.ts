import { html } from "./html-text.ts";

const document = (nonce: string, { title, head, body }: Readonly<Record<"title" | "head" | "body", string>>): string =>
  `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${head}<title>${title} - Muster</title>
<style nonce="${nonce}">
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
  body { margin: 3rem auto; max-width: 48rem; padding: 0 1rem; } h1 { font-size: 1.3rem; } pre { overflow-x: auto; font-size: 0.85rem; }
</style>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`;

/**
 * The page that a browser shows while a source checkout builds its console. The page about the build of the console requests itself again every
 * second, without a script.
 */
export const consoleWaitPage = (nonce: string): string =>
  document(nonce, {
    title: "The console is being built",
    head: '<meta http-equiv="refresh" content="1">\n',
    body: "<p>This hub runs from a source checkout, so it builds the console at the first request. The build takes a few seconds, and the page then opens by itself. The API works meanwhile.</p>",
  });

export const consoleFailedPage =
  (lines: readonly string[]) =>
  (nonce: string): string =>
    document(nonce, {
      title: "The console cannot be built",
      head: "",
      body: `<p>The build of the console failed. The API and the command line work. If the output names a missing package, run <code>npm ci</code>, and then reload the page.</p>
<pre tabindex="0">${lines.map(html).join("\n")}</pre>`,
    });
