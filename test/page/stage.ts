import type { Browser } from "playwright-core";
import { startChromium } from "./chromium.ts";
import { type PageWorld, startPageWorld } from "./page-world.ts";
import type { Visit, VisitOptions } from "./visit.ts";
import { Visits } from "./visits.ts";

/** One hub and one browser, for all test cases of the operators' page. */
export class Stage {
  readonly world: PageWorld;
  readonly #browser: Browser;
  readonly #visits: Visits;

  private constructor(world: PageWorld, browser: Browser) {
    this.world = world;
    this.#browser = browser;
    this.#visits = new Visits(browser, world.rig.apiUrl);
  }

  static async set(): Promise<Stage> {
    const browser = await startChromium();
    try {
      return new Stage(await startPageWorld(), browser);
    } catch (error) {
      await browser.close();
      throw error;
    }
  }

  stranger(options: VisitOptions = {}): Promise<Visit> {
    return this.#visits.begin(options);
  }

  async operator(options: VisitOptions = {}): Promise<Visit> {
    const visit = await this.stranger(options);
    await visit.logIn(this.world.tokens.admin);
    return visit;
  }

  clear(): Promise<void> {
    return this.#visits.clear();
  }

  async close(): Promise<void> {
    await this.#browser.close();
    await this.world.close();
  }
}
