import type { Browser, BrowserContextOptions, ConsoleMessage, Locator, Page } from "playwright-core";
import { until } from "../support/until.ts";

/** For what comes within a second or two: on a machine that is busy with other things too. */
const PATIENCE_MS = 150_000;

/** How the browser itself notes an answer that is an error, which the page then tells its reader of. */
const NOTED_FAILURE = /^Failed to load resource: (?:.*status of (\d+)|(net::ERR_\w+))/;

export interface VisitOptions extends BrowserContextOptions {
  /** Answers that this visit is about; any other failed request is a complaint. */
  readonly expects?: RegExp;
}

/** One person at the page, in a browser of their own, who misses nothing that the browser complains of. */
export class Visit {
  readonly page: Page;
  readonly url: string;
  /** Errors, warnings and violations of the page's policy that the console shows; dialogues of scripts; requests to elsewhere. */
  readonly complaints: string[] = [];
  /** What the page has asked the hub to do. */
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
      if (request.method() !== "GET") this.written.push(`${request.method()} ${new URL(request.url()).pathname}`);
    });
    page.on("response", (response) => {
      if (response.url() === `${url}/api/v1/admin/status`) this.looks += 1;
    });
  }

  static async begin(browser: Browser, url: string, { expects = /^never$/, ...options }: VisitOptions): Promise<Visit> {
    const context = await browser.newContext({ locale: "en-GB", viewport: { width: 1280, height: 900 }, ...options });
    context.setDefaultTimeout(PATIENCE_MS);
    const visit = new Visit(await context.newPage(), url, expects);
    await visit.page.goto(`${url}/`);
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

  /** Another view, by its address. */
  async at(hash: string, heading: string): Promise<void> {
    await this.page.goto(`${this.url}/${hash}`);
    await this.heading(heading).waitFor();
  }

  heading = (name: string): Locator => this.page.getByRole("heading", { name, exact: true });

  section = (name: string): Locator => this.page.locator("section").filter({ has: this.heading(name) });

  row = (section: string, text: string): Locator =>
    this.section(section).getByRole("row").filter({ hasText: text }).first();

  button = (name: string): Locator => this.page.getByRole("button", { name, exact: true });

  /** The names of all that can be pressed in the view. */
  buttons = (): Promise<string[]> =>
    this.page
      .getByRole("main")
      .getByRole("button")
      .evaluateAll((all) => all.map((one) => one.ariaLabel ?? one.textContent));

  /** Waits until the place says all of this. */
  says = (place: Locator, ...texts: string[]): Promise<void> => this.saysAsNow(place, async () => texts);

  /** The same where what it should say moves on by itself: that is asked for again as often as the page is looked at. */
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

  /** Presses a button and goes through with it. */
  async act(button: string, reason: string): Promise<void> {
    const { page } = this;
    await this.button(button).click();
    const dialog = page.getByRole("dialog", { name: button, exact: true });
    await dialog.getByLabel("Reason, for the audit").fill(reason);
    await dialog.getByRole("button").first().click();
    await dialog.waitFor({ state: "hidden" });
  }

  /** As often as this the page has brought itself up to date from now on. */
  async looksAgain(times: number): Promise<void> {
    const before = this.looks;
    await until(`${times} more looks`, () => (this.looks >= before + times ? true : undefined), {
      timeoutMs: PATIENCE_MS,
    });
  }

  end = (): Promise<void> => this.page.context().close();
}
