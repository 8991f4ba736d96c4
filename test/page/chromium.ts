import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

/** As distributions call it. */
const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/**
 * Only the last list of features counts, so this one has the driver's own names too: most of them keep the browser off the network. The first two are
 * the address bar's windows, of which every visit would start a renderer that nobody looks at.
 */
const WITHOUT = [
  "WebUIOmniboxPopup",
  "WebUIOmniboxAimPopup",
  "AimEnabled",
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsFirstBalancedModeAutoEnable",
  "HttpsUpgrades",
  "MediaRouter",
  "NetworkTimeServiceQuerying",
  "OptimizationHints",
  "PaintHolding",
  "PreconnectToSearch",
];

/** Nothing but the page itself goes out; the profile is a new one each time. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  `--disable-features=${WITHOUT.join(",")}`,
];

/** What `MUSTER_TEST_CHROMIUM` names; where it names nothing, the first that is on the PATH. */
function whereChromiumIs(): string {
  const named = process.env["MUSTER_TEST_CHROMIUM"] ?? "";
  if (named !== "") {
    if (existsSync(named)) return named;
    throw new Error(`MUSTER_TEST_CHROMIUM names ${named}, and there is no such file. Correct it, or unset it.`);
  }
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const found = NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find((file) => existsSync(file));
  if (found !== undefined) return found;
  throw new Error(
    `The page is tested in Chromium, and none of ${NAMES.join(", ")} is on the PATH. Install it (apt-get install chromium), or name one in MUSTER_TEST_CHROMIUM.`,
  );
}

export const startChromium = (): Promise<Browser> =>
  chromium.launch({ executablePath: whereChromiumIs(), headless: true, args: FLAGS });
