import { expect, it } from "vitest";
import { DARK } from "./dark-site.ts";
import type { Stage } from "./stage.ts";

const STORES = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, history.state])";

export function loginCases(stage: () => Stage): void {
  it("has a policy that allows no outside code, and says where to find a token", async () => {
    const visit = await stage().stranger();
    const answer = await visit.page.reload();
    expect(answer?.headers()["content-security-policy"]).toMatch(/^default-src 'none';.*script-src 'nonce-[^']+';/);
    await visit.says(visit.page.getByRole("main"), "in the file admin-token");
    expect(await visit.page.getByLabel("Token").getAttribute("type")).toBe("password");
    expect(await visit.page.evaluate("document.activeElement.id")).toBe("token");
  });

  it("refuses a wrong token with the reason, and stores nothing of it", async () => {
    const visit = await stage().stranger({ expects: /^401$/ });
    await visit.page.getByLabel("Token").fill("no-token-of-this-hub");
    await visit.page.getByRole("button", { name: "Log in" }).click();
    await visit.page.getByText("The hub refuses this token.").waitFor();
    expect(await visit.page.getByRole("heading").allInnerTexts()).toEqual(["Muster"]);
    expect(await visit.page.getByLabel("Token").inputValue()).toBe("");
    expect(await visit.page.evaluate(STORES)).not.toContain("no-token");
    await visit.page.getByLabel("Token").fill(stage().world.tokens.admin);
    await visit.page.keyboard.press("Enter");
    await visit.heading("Sites").waitFor();
    expect(await visit.page.getByText("The hub refuses this token.").count()).toBe(0);
  });

  it("makes a session of a valid token for all tabs, keeps no token, and removes the data shown at the sign-out", async () => {
    const { admin } = stage().world.tokens;
    // A question that is under way at the sign-out gets the answer 401.
    const visit = await stage().operator({ expects: /^401$/ });
    const { page } = visit;
    await visit.says(page.getByRole("banner"), "you are admin");
    expect(page.url()).toBe(`${visit.url}/`);
    expect(await page.content()).not.toContain(admin);
    expect(await page.getByLabel("Token").inputValue()).toBe("");
    expect(await page.evaluate(STORES)).toBe(JSON.stringify([{}, {}, "", null]));
    const cookies = await page.context().cookies();
    expect(cookies).toMatchObject([{ name: "muster", httpOnly: true, sameSite: "Lax", path: "/" }]);
    expect(cookies[0]?.value).not.toContain(admin);

    await page.reload();
    await visit.heading("Sites").waitFor();
    const other = await page.context().newPage();
    await other.goto(`${visit.url}/`);
    await other.getByRole("heading", { name: "Sites", exact: true }).waitFor();

    await page.getByRole("link", { name: DARK.known }).click();
    await visit.heading(`Node ${DARK.known}`).waitFor();
    await page.getByLabel("Host").fill(DARK.gone);
    await page.getByRole("button", { name: "Sign out", exact: true }).click();
    await page.getByLabel("Token").waitFor();
    expect(await page.title()).toBe("Muster");
    expect(await page.getByLabel("Host").inputValue()).toBe("");
    expect(await page.context().cookies()).toEqual([]);
    expect(await page.content()).not.toContain("dark-");
    await other.getByText("You signed out in another tab.").waitFor();
    expect(await other.content()).not.toContain("dark-");
    await page.getByLabel("Token").fill(admin);
    await page.keyboard.press("Enter");
    await other.getByRole("heading", { name: "Sites", exact: true }).waitFor();
    await other.close();
  });

  it("says that its session has ended, and ends the sessions of all browsers by one sign-out", async () => {
    const one = await stage().operator({ expects: /^401$/ });
    const two = await stage().operator({ expects: /^401$/ });
    await one.page.getByRole("button", { name: "Sign out everywhere" }).click();
    await one.page.getByText("You signed out everywhere.").waitFor();
    await two.page.getByText("Your session has ended. Sign in again.").waitFor();
    await two.page.getByLabel("Token").waitFor();
    expect(await two.page.content()).not.toContain("dark-");
  });

  it("tells a viewer that it can only read, and shows no buttons", async () => {
    const visit = await stage().stranger();
    await visit.logIn(stage().world.tokens.viewer);
    await visit.says(visit.page.getByRole("banner"), "watcher, who may only read");
    expect(await visit.buttons()).toEqual([]);
    await visit.page.getByRole("link", { name: "dark-mended" }).first().click();
    await visit.heading("Node dark-mended").waitFor();
    expect(await visit.buttons()).toEqual([]);
    await visit.at("#/authority", "The hub's keys");
    expect(await visit.buttons()).toEqual([]);
  });
}
