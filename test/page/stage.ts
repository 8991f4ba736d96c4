import type { Browser } from "playwright-core";
import { expect } from "vitest";
import { startChromium } from "./chromium.ts";
import { type PageWorld, startPageWorld } from "./page-world.ts";
import { Visit, type VisitOptions } from "./visit.ts";

/** One hub and one browser, for all test cases of the operators' page. */
export class Stage {
  readonly world: PageWorld;
  readonly #browser: Browser;
  readonly #visits = new Set<Visit>();

  private constructor(world: PageWorld, browser: Browser) {
    this.world = world;
    this.#browser = browser;
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

  async stranger(options: VisitOptions = {}): Promise<Visit> {
    const visit = await Visit.begin(this.#browser, this.world.rig.apiUrl, options);
    this.#visits.add(visit);
    return visit;
  }

  async operator(options: VisitOptions = {}): Promise<Visit> {
    const visit = await this.stranger(options);
    await visit.logIn(this.world.tokens.admin);
    return visit;
  }

  async clear(): Promise<void> {
    const ended = [...this.#visits];
    this.#visits.clear();
    await Promise.all(ended.map((visit) => visit.end()));
    expect(ended.flatMap((visit) => visit.complaints)).toEqual([]);
  }

  async close(): Promise<void> {
    await this.#browser.close();
    await this.world.close();
  }
}
