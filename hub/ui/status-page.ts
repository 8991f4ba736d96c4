import { readFileSync } from "node:fs";

const read = (file: string): string => readFileSync(new URL(file, import.meta.url), "utf8");
const style = read("./page.css");
/** The names of the script files that `status-page.ts` joins into the page's one script, in this order. */
const PARTS = [
  "dom",
  "operations",
  "batch",
  "drift",
  "allocations",
  "sanitization",
  "node",
  "authority",
  "approvals",
  "tokens",
  "lists",
  "dialog",
].map((part) => `./page-${part}.js`);
const script = [...PARTS, "./page.js"].map(read).join("");

/** Returns the operators' page: one self-contained document, whose script (`page.js`) reads the public API (decision P8). */
export const statusPage = (nonce: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Muster</title>
<style nonce="${nonce}">${style}</style>
</head>
<body>
<header>
  <h1><a href="#/">Muster</a></h1><span id="about" class="about"></span>
  <form id="find" role="search" hidden><label for="host">Host</label><input id="host" autocomplete="off" spellcheck="false"><button>Find</button></form>
  <a href="#/list/allocations">Allocations</a><a href="#/list/records">Records</a><a href="#/approvals">Approvals</a><a href="#/tokens" data-needs="manage_people">Tokens</a><a href="#/authority">Keys</a><a href="/docs">API</a><button id="leave" type="button" hidden>Sign out</button><button id="leave-all" type="button" hidden>Sign out everywhere</button>
</header>
<p id="stale" role="status"></p>
<p id="ail" role="status"></p>
<p id="note" role="alert"></p>
<p id="done" role="status"></p>
<div id="asked" role="status"></div>
<main>
  <form id="login">
    <p id="by-provider" hidden><a id="provider" href="/sign-in">Sign in</a> or use a token:</p>
    <label for="token">Token</label>
    <input id="token" type="password" autocomplete="off" spellcheck="false" required aria-describedby="token-hint">
    <button>Log in</button>
    <p id="token-hint">The first one lies in the hub's state folder, in the file admin-token. All tabs of this browser share the session, and the page keeps no token.</p>
  </form>
  <div id="view" hidden></div>
</main>
<dialog id="dialog" aria-labelledby="dialog-title" aria-describedby="dialog-effect"><form method="dialog">
  <h2 id="dialog-title"></h2>
  <p id="dialog-effect"></p>
  <p id="reason-part"><label for="reason">Reason, for the audit</label><input id="reason" maxlength="256" required></p>
  <div class="verbs"><button id="dialog-do" value="do"></button><button value="no" formnovalidate>No</button></div>
</form></dialog>
<script type="module" nonce="${nonce}">${script}</script>
</body>
</html>
`;
