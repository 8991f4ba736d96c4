import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext, CDPSession, Page } from "playwright-core";
import { buildInChild } from "../../hub/console/build-in-child.ts";
import { sql } from "../../hub/db/orm.ts";
import { startChromium } from "../page/chromium.ts";
import { freeHubPorts, startHubProcess } from "../support/hub-process.ts";
import { type Bench, withDatabase } from "./bench-hubs.ts";
import type { Figure } from "./figure.ts";
import { seedFleet } from "./seed-fleet.ts";

const NODES = 3_000;
const IDLE_MS = 30_000;
const MOST_BYTES = 300_000;
const ROW = "tbody tr[aria-rowindex]";
const of = `console, ${NODES} nodes`;

/** Measures the console in headless Chromium, with a hub process and a fleet of 3,000 nodes: its size, its requests, and its frames. */
export async function measureConsole(stateDir: string): Promise<Figure[]> {
  const folder = join(stateDir, "built");
  mkdirSync(folder, { recursive: true });
  const began = performance.now();
  await buildInChild(folder, "measured", new AbortController().signal);
  const build = {
    name: "console, build",
    value: (performance.now() - began) / 1000,
    unit: "s",
    note: "in a child process",
  };
  return withDatabase(stateDir, async (bench) => [build, ...(await withHub(bench))]);
}

async function withHub({ url: databaseUrl, stateDir, database }: Bench): Promise<Figure[]> {
  await seedFleet(database.db, NODES);
  await database.db.execute(sql`vacuum analyze`);
  const hubDir = join(stateDir, "console-hub");
  const hub = startHubProcess({
    databaseUrl,
    stateDir: hubDir,
    ports: await freeHubPorts(),
    logFile: join(stateDir, "hub.log"),
  });
  const browser = await startChromium();
  try {
    const { listening, admin_token_file: tokenFile } = (await hub.ready) as Record<string, string>;
    return await inBrowser(browser, `${listening}/console/nodes`, readFileSync(tokenFile ?? "", "utf8").trim());
  } finally {
    await browser.close();
    await hub.stop();
  }
}

async function inBrowser(browser: Browser, url: string, token: string): Promise<Figure[]> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const first = await context.newPage();
  await first.goto(url);
  await first.getByLabel("Token").fill(token);
  await first.keyboard.press("Enter");
  await first.locator(ROW).first().waitFor();
  await first.close();
  return [...(await firstView(context, url)), ...(await stay(context, url))];
}

/** A view with an empty cache, of somebody who has signed in already. */
async function firstView(context: BrowserContext, url: string): Promise<Figure[]> {
  const page = await context.newPage();
  const network = await context.newCDPSession(page);
  await network.send("Network.enable");
  await network.send("Network.setCacheDisabled", { cacheDisabled: true });
  const loaded = countLoaded(network);
  const began = performance.now();
  await page.goto(url);
  await page.locator(ROW).first().waitFor();
  const usable = performance.now() - began;
  await page.getByText("live", { exact: true }).waitFor();
  await page.close();
  const note = "headless Chromium, empty cache, compressed bytes with headers";
  return [
    { name: `${of}, first view`, value: loaded.bytes() / 1000, unit: "kB", note, atMost: MOST_BYTES / 1000 },
    {
      name: `${of}, requests of the first view`,
      value: loaded.requests(),
      unit: "requests",
      note: "with the event stream",
    },
    {
      name: `${of}, first view until the rows are there`,
      value: usable,
      unit: "ms",
      note: "hub and browser share the machine",
    },
  ];
}

function countLoaded(network: CDPSession): { bytes(): number; requests(): number } {
  let [bytes, requests] = [0, 0];
  network.on("Network.requestWillBeSent", () => {
    requests += 1;
  });
  network.on("Network.dataReceived", ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  network.on("Network.responseReceived", ({ response }) => {
    bytes += response.encodedDataLength;
  });
  return { bytes: () => bytes, requests: () => requests };
}

async function stay(context: BrowserContext, url: string): Promise<Figure[]> {
  const page = await context.newPage();
  await page.goto(url);
  await page.locator(ROW).first().waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  let asked = 0;
  page.on("request", () => {
    asked += 1;
  });
  await page.waitForTimeout(IDLE_MS);
  const idle = {
    name: `${of}, requests of an idle tab`,
    value: asked / (IDLE_MS / 1000),
    unit: "requests/s",
    note: `in ${IDLE_MS / 1000} s`,
    atMost: 0,
  };
  const longest = await scrollToEnd(page);
  return [
    idle,
    {
      name: `${of}, longest frame while scrolling`,
      value: longest,
      unit: "ms",
      note: "from the first row to the last, 340 pixels a frame",
    },
  ];
}

/** Scrolls the list from its first row to its last, and returns the longest time between two frames. */
const scrollToEnd = (page: Page): Promise<number> =>
  page.evaluate<number>(`new Promise((resolve) => {
    const list = document.querySelector("section[aria-label=Nodes][tabindex]");
    let [last, longest, still, seen] = [performance.now(), 0, 0, 0];
    const frame = (now) => {
      longest = Math.max(longest, now - last);
      last = now;
      list.scrollTop += 340;
      still = list.scrollTop === seen ? still + 1 : 0;
      seen = list.scrollTop;
      if (still > 120) resolve(longest);
      else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  })`);
