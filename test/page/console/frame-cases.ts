import { expect, it } from "vitest";
import { until } from "../../support/until.ts";
import type { ConsoleStage } from "./console-stage.ts";

const STREAM = "**/api/v1/admin/events/stream";

export function consoleFrameCases(stage: () => ConsoleStage): void {
  it("refuses a wrong token in the hub's words, and leads after the sign-in to the screen that was asked for", async () => {
    const visit = await stage().stranger("/nodes?status=offline", { expects: /^401$/ });
    const { page } = visit;
    await page.getByLabel("Token").fill("mstr_wrong");
    await page.keyboard.press("Enter");
    await page.getByText("The hub refuses this token.").waitFor();
    await page.getByLabel("Token").fill(stage().api.admin);
    await page.keyboard.press("Enter");
    await visit.heading("Nodes").waitFor();
    expect(page.url()).toBe(`${visit.url}/console/nodes?status=offline`);
    expect(
      await page.evaluate("JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie"),
    ).not.toContain(stage().api.admin);
  });

  it("shares the session between tabs, and a sign-out ends it in all of them", async () => {
    const visit = await stage().operator("/");
    const other = await visit.page.context().newPage();
    await other.goto(`${visit.url}/console/nodes`);
    await other.getByRole("heading", { name: "Nodes" }).waitFor();
    await visit.page.getByRole("button", { name: "Menu of admin" }).click();
    await visit.page.getByRole("menuitem", { name: "Sign out", exact: true }).click();
    await visit.page.getByText("You signed out.", { exact: true }).waitFor();
    await other.getByText("You signed out in another tab.").waitFor();
    expect(await other.getByRole("row").count()).toBe(0);
  });

  it("keeps a session that no script can read, and ends the sessions of all browsers by one sign-out", async () => {
    const one = await stage().operator("/");
    const two = await stage().operator("/nodes", { expects: /^401$/ });
    const cookies = await one.page.context().cookies();
    expect(cookies).toMatchObject([{ name: "muster", httpOnly: true, sameSite: "Lax", path: "/" }]);
    expect(cookies[0]?.value).not.toContain(stage().api.admin);
    await one.page.getByRole("button", { name: "Menu of admin" }).click();
    await one.page.getByRole("menuitem", { name: "Sign out everywhere" }).click();
    await one.page.getByText("You signed out everywhere.").waitFor();
    expect(await one.page.context().cookies()).toEqual([]);
    await two.page.getByLabel("Token").waitFor();
    expect(await two.page.getByRole("row").count()).toBe(0);
  });

  it("shows a viewer no verb that the hub would refuse", async () => {
    const visit = await stage().operator("/nodes", {}, stage().api.viewer);
    await visit.page.getByRole("checkbox", { name: "Select c000u00001" }).check();
    await visit.page.getByText("Your role lacks the right operate_nodes.").waitFor();
    expect(await visit.page.getByRole("button", { name: "Do", exact: true }).isDisabled()).toBe(true);
    expect(await visit.page.getByRole("link", { name: "Tokens" }).count()).toBe(0);
    await visit.page.goto(`${visit.url}/console/tokens`);
    await visit.page.getByText("The screen needs the right manage_people.").waitFor();
  });

  it("opens screens and hosts by keys, and lets a person switch single keys off", async () => {
    const visit = await stage().operator("/");
    const { page } = visit;
    const { keyboard } = page;
    await keyboard.press("g");
    await keyboard.press("n");
    await visit.heading("Nodes").waitFor();
    await keyboard.press("/");
    await keyboard.type("go?");
    expect(await page.getByLabel("Search nodes").inputValue()).toBe("go?");
    await page.getByLabel("Search nodes").blur();
    await keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).getByRole("switch").uncheck();
    await keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await keyboard.press("g");
    await keyboard.press("o");
    await keyboard.press("Control+k");
    await visit.heading("Nodes").waitFor();
    await keyboard.type("overv");
    await keyboard.press("Enter");
    await visit.heading("Overview").waitFor();
    await keyboard.press("Control+k");
    await keyboard.type("u00042");
    await page.getByRole("option", { name: /c001u00042/ }).waitFor();
  });

  it("shows a change by an event in every tab, with one event stream for the browser", async () => {
    const visit = await stage().stranger("/nodes?search=u00045");
    const context = visit.page.context();
    let streams = 0;
    context.on("request", (request) => {
      if (request.url().includes("/events/stream")) streams += 1;
    });
    await visit.page.getByLabel("Token").fill(stage().api.admin);
    await visit.page.keyboard.press("Enter");
    const other = await context.newPage();
    await other.goto(`${visit.url}/console/nodes?search=u00045`);
    for (const page of [visit.page, other]) {
      await page.getByText("live", { exact: true }).waitFor();
      await page.getByRole("row", { name: /c001u00045/ }).waitFor();
    }
    const { body } = await stage().api.ask("GET", "/api/v1/admin/nodes?search=u00045");
    await stage().change(`/nodes/${body.items[0].id}/cordon`, { reason: "a person looks at its fans" });
    // A hidden tab asks when a person looks at it.
    for (const page of [other, visit.page]) {
      await page.bringToFront();
      await page.getByText("a person looks at its fans").waitFor();
    }
    expect(streams).toBe(1);
  });

  it("says that the hub is away, keeps what it shows, and goes on when the hub is back", async () => {
    const visit = await stage().stranger("/nodes", { expects: /^net::ERR_/ });
    const { page } = visit;
    // The console also tries by itself, and then the button is gone.
    const tryNow = () =>
      page
        .getByRole("button", { name: "Try now" })
        .click({ timeout: 5_000 })
        .catch(() => undefined);
    await page.route(STREAM, (route) => route.abort());
    await page.getByLabel("Token").fill(stage().api.admin);
    await page.keyboard.press("Enter");
    await page.getByText("The hub does not answer", { exact: true }).waitFor();
    await page.getByRole("row", { name: /c000u00001/ }).waitFor();
    await page.unroute(STREAM);
    await tryNow();
    await page.getByText("live", { exact: true }).waitFor();
    // The stream brought no event, so it has no cursor, and the next stream begins after what happened meanwhile.
    await page.context().setOffline(true);
    await page.getByText("The hub does not answer", { exact: true }).waitFor();
    const { body } = await stage().api.ask("GET", "/api/v1/admin/nodes?search=u00007");
    await stage().change(`/nodes/${body.items[0].id}/cordon`, { reason: "nobody was told of it" });
    await page.context().setOffline(false);
    await tryNow();
    await page.getByText("nobody was told of it").waitFor();
    await until("the banner to go", async () =>
      (await page.getByText("The hub does not answer", { exact: true }).count()) === 0 ? true : undefined,
    );
  });
}
