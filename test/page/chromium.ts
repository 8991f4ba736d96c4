import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/**
 * Features of Chromium that the tests switch off, mostly because they would use the network. Chromium reads only the last list of disabled features,
 * so `WITHOUT` repeats the features in playwright's list. Chromium would start a process at each visit for `WebUIOmniboxPopup` and
 * `WebUIOmniboxAimPopup`, which are windows of the address bar.
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

/** Chromium's command-line flags for the tests, which keep the browser off the network. */
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
