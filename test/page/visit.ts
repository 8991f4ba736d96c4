import type { Browser, BrowserContextOptions, ConsoleMessage, Locator, Page } from "playwright-core";
import { until } from "../support/until.ts";

/** A long time-out for steps in the browser, which take a second or two unless the computer is busy. */
const PATIENCE_MS = 150_000;

/** Matches the browser's console message for a failed request, which the page also shows to its reader. */
const NOTED_FAILURE = /^Failed to load resource: (?:.*status of (\d+)|(net::ERR_\w+))/;

/** The addresses of the sign-in and sign-out, which change no data of the fleet. */
const SIGN_IN = /\/sign-(in\/token|out)$/;

export interface VisitOptions extends BrowserContextOptions {
  /** Matches the status or network error of requests that the test expects to fail. A failed request that `expects` does not match fails the test. */
  readonly expects?: RegExp;
  /** The path of the first page of the visit. */
  readonly path?: string;
}

/** Simulates one person at the operators' page, with a new browser profile, and collects everything that the browser reports. */
export class Visit {
  readonly page: Page;
  readonly url: string;
  /** What may not happen during a visit: errors and warnings in the console, policy violations, script dialogues, and requests to other servers. */
  readonly complaints: string[] = [];
  /** The requests to change data that the operators' page has sent to the hub. */
  readonly written: string[] = [];
  looks = 0;

  private constructor(page: Page, url: string, expects: RegExp) {
    this.page = page;
    this.url = url;
    page.on("console", (message) => this.#hear(message, expects));
    page.on("pageerror", (error) => this.complaints.push(`a script failed: ${error.message}`));
    page.on("dialog", (dialog) => {
      this.complaints.push(`a script asked: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(`${url}/`)) this.complaints.push(`asked elsewhere: ${request.url()}`);
      if (request.method() !== "GET" && !SIGN_IN.test(request.url()))
        this.written.push(`${request.method()} ${new URL(request.url()).pathname}`);
    });
    page.on("response", (response) => {
      if (response.url() === `${url}/api/v1/admin/status`) this.looks += 1;
    });
  }

  static async begin(
    browser: Browser,
    url: string,
    { expects = /^never$/, path = "/", ...options }: VisitOptions,
  ): Promise<Visit> {
    const context = await browser.newContext({ locale: "en-GB", viewport: { width: 1280, height: 900 }, ...options });
    context.setDefaultTimeout(PATIENCE_MS);
    const visit = new Visit(await context.newPage(), url, expects);
    await visit.page.goto(`${url}${path}`);
    return visit;
  }

  #hear(message: ConsoleMessage, expects: RegExp): void {
    if (!["error", "warning", "assert"].includes(message.type())) return;
    const [, status, broken] = NOTED_FAILURE.exec(message.text()) ?? [];
    if (!expects.test(status ?? broken ?? "")) this.complaints.push(message.text());
  }

  async logIn(token: string): Promise<void> {
    await this.page.getByLabel("Token").fill(token);
    await this.page.getByRole("button", { name: "Log in" }).click();
    await this.heading("Sites").waitFor();
  }

  async at(hash: string, heading: string): Promise<void> {
    await this.page.goto(`${this.url}/${hash}`);
    await this.heading(heading).waitFor();
  }

  heading = (name: string): Locator => this.page.getByRole("heading", { name, exact: true });

  section = (name: string): Locator => this.page.locator("section").filter({ has: this.heading(name) });

  row = (section: string, text: string): Locator =>
    this.section(section).getByRole("row").filter({ hasText: text }).first();

  button = (name: string): Locator => this.page.getByRole("button", { name, exact: true });

  buttons = (): Promise<string[]> =>
    this.page
      .getByRole("main")
      .getByRole("button")
      .evaluateAll((all) => all.map((one) => one.ariaLabel ?? one.textContent));

  says = (place: Locator, ...texts: string[]): Promise<void> => this.saysAsNow(place, async () => texts);

  /**
   * Waits until an element of the page contains all expected texts. `saysAsNow` calls `texts` before each comparison, because a text such as a count
   * of seconds changes with time.
   */
  async saysAsNow(place: Locator, texts: () => Promise<readonly string[]>): Promise<void> {
    const plain = (text: string): string => text.replace(/\s+/g, " ");
    await until(
      "the page to say what it should",
      async () => {
        // biome-ignore lint/performance/useDomNodeTextContent: what its reader sees, and nothing that is hidden
        const seen = plain(await place.innerText({ timeout: 5_000 }));
        const missing = (await texts()).filter((text) => !seen.includes(plain(text)));
        if (missing.length > 0) throw new Error(`it says ${JSON.stringify(seen)}, and not ${JSON.stringify(missing)}`);
        return true;
      },
      { timeoutMs: PATIENCE_MS, everyMs: 150 },
    );
  }

  async act(button: string, reason: string): Promise<void> {
    const { page } = this;
    await this.button(button).click();
    const dialog = page.getByRole("dialog", { name: button, exact: true });
    await dialog.getByLabel("Reason, for the audit").fill(reason);
    await dialog.getByRole("button").first().click();
    await dialog.waitFor({ state: "hidden" });
  }

  async looksAgain(times: number): Promise<void> {
    const before = this.looks;
    await until(`${times} more looks`, () => (this.looks >= before + times ? true : undefined), {
      timeoutMs: PATIENCE_MS,
    });
  }

  end = (): Promise<void> => this.page.context().close();
}
