import type { Browser } from "playwright-core";
import { expect } from "vitest";
import { Visit, type VisitOptions } from "./visit.ts";

/** The visits of one test case, in one browser. */
export class Visits {
  readonly #browser: Browser;
  readonly #url: string;
  readonly #open = new Set<Visit>();

  constructor(browser: Browser, url: string) {
    this.#browser = browser;
    this.#url = url;
  }

  async begin(options: VisitOptions): Promise<Visit> {
    const visit = await Visit.begin(this.#browser, this.#url, options);
    this.#open.add(visit);
    return visit;
  }

  /** Ends all visits, and fails if one of their pages has complained. */
  async clear(): Promise<void> {
    const ended = [...this.#open];
    this.#open.clear();
    await Promise.all(ended.map((visit) => visit.end()));
    expect(ended.flatMap((visit) => visit.complaints)).toEqual([]);
  }
}
