import { html } from "./html-text.ts";

/** The page that says why a sign-in failed, and what to do next. */
export const signInFailedPage =
  (failed: { readonly title: string; readonly detail: string; readonly code: string; readonly requestId: string }) =>
  (nonce: string): string =>
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${html(failed.title)} - Muster</title>
<style nonce="${nonce}">
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
  body { margin: 3rem auto; max-width: 40rem; padding: 0 1rem; } h1 { font-size: 1.3rem; } code { overflow-wrap: anywhere; }
</style>
</head>
<body>
<main>
<h1>${html(failed.title)}</h1>
<p>${html(failed.detail)}</p>
<p><a href="/sign-in">Sign in again</a> or <a href="/console/">go to the console</a>, where you may also sign in with a token.</p>
<p>Code <code>${html(failed.code)}</code>, request <code>${html(failed.requestId)}</code></p>
</main>
</body>
</html>
`;
