import { NODE, NPM, never, only } from "./import-rule.mjs";

/** The packages whose code runs in the browser. All are dev packages, because a package of the hub carries the built console. */
const IN_BROWSER = ["@mantine/", "@tanstack/", "@types/react", "get-nonce/", "openapi-fetch/", "react/", "react-dom/"];

export const CONSOLE_IMPORTS = [
  only(
    "console-app-imports",
    "^hub/console/app/",
    ["^hub/console/app/", ...IN_BROWSER.map((name) => `${NPM}${name}`)],
    "The browser's code knows the hub only by the API's description, as another client does.",
  ),
  only(
    "console-build-imports",
    "^hub/console/build/",
    ["^hub/console/(build/|built-form[.]ts$)", `${NPM}(openapi-typescript|vite)/`, NODE],
    "The build needs dev packages, so no hub may load it; a child process runs it.",
  ),
  only(
    "console-imports",
    "^hub/console/",
    ["^hub/console/", "^shared/", NODE],
    "What serves the console knows nothing of nodes, people or the database.",
    { except: ["^hub/console/(app|build)/"] },
  ),
  never(
    "console-code-apart",
    "^(agent|hub|shared|cloud-init)/",
    "^hub/console/(app|build)/",
    "A package of the hub has neither the console's sources nor its build.",
    { except: ["^hub/console/(app|build)/"] },
  ),
];
