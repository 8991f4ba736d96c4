import { readFileSync } from "node:fs";

const read = (file: string): string => readFileSync(new URL(file, import.meta.url), "utf8");
const style = read("./page.css");
const script = ["./page-dom.js", "./page-drift.js", "./page-node.js", "./page.js"].map(read).join("");

/** The operators' page: one self-contained document, whose script (`page.js`) reads the public API. */
export const statusPage = (nonce: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Muster</title>
<style nonce="${nonce}">${style}</style>
</head>
<body>
<header><h1><a href="#/">Muster</a></h1><span id="about" class="about"></span><a href="/docs">API</a><button id="leave" type="button" hidden>Forget the token</button></header>
<form id="login"><label for="token">Token</label><input id="token" type="password" autocomplete="off" spellcheck="false"><button>Show</button></form>
<p id="stale" role="status"></p>
<p id="note" role="alert"></p>
<main id="main" hidden></main>
<dialog id="dialog"><form method="dialog"><div>
  <p id="dialog-title"></p>
  <label for="reason">Reason, for the audit</label> <input id="reason" maxlength="512" required>
  <menu><button value="do" class="first">Do it</button><button value="no" formnovalidate>No</button></menu>
</div></form></dialog>
<script type="module" nonce="${nonce}">${script}</script>
</body>
</html>
`;
