import type { Browser, BrowserContextOptions, ConsoleMessage, Locator, Page } from "playwright-core";

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

interface Act {
  readonly reason?: string;
  /** What the person does in the dialog before the confirmation. */
  readonly before?: (dialog: Locator) => Promise<unknown>;
}

/** Simulates one person at the console, with a new browser profile, and collects everything that the browser reports. */
export class Visit {
  readonly page: Page;
  readonly url: string;
  /** What may not happen during a visit: errors and warnings in the console, policy violations, script dialogues, and requests to other servers. */
  readonly complaints: string[] = [];
  /** The requests to change data that the console has sent to the hub. */
  readonly written: string[] = [];

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

  heading = (name: string): Locator => this.page.getByRole("heading", { name, exact: true });

  button = (name: string): Locator => this.page.getByRole("button", { name, exact: true });

  /** Gives a verb of the console by its button, and waits until the hub has taken it. */
  async act(verb: string, what: string, { reason = "", before }: Act = {}): Promise<void> {
    await this.button(`${verb} ${what}`).click();
    const dialog = this.page.getByRole("dialog", { name: `${verb} ${what}`, exact: true });
    if (reason !== "") await dialog.getByLabel("Reason, for the audit").fill(reason);
    await before?.(dialog);
    await dialog.getByRole("button", { name: verb, exact: true }).click();
    await dialog.waitFor({ state: "hidden" });
    await this.page.getByText(`${verb} ${what}: the hub has taken it.`).last().waitFor();
  }

  /** Looks at another tab and comes back. */
  lookAway = (): Promise<unknown> =>
    this.page.evaluate(`for (const state of ["hidden", "visible"]) {
      Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
      document.dispatchEvent(new Event("visibilitychange"));
    }`);

  end = (): Promise<void> => this.page.context().close();
}
