import { expect, it } from "vitest";
import { newSecret } from "../../forms/webhook-secret.ts";
import { checkWebhook, type WebhookValues, webhookBody } from "./webhook-form.ts";

const GOOD: WebhookValues = {
  url: "https://hooks.example/muster",
  types: "node.*, allocation.*",
  description: "",
  secret: newSecret((bytes) => bytes.fill(7)),
};
const wrong = (changes: Partial<WebhookValues>): string[] =>
  Object.entries(checkWebhook({ ...GOOD, ...changes })).flatMap(([name, error]) => (error === undefined ? [] : [name]));

it("makes a secret of 32 bytes that the API takes", () => {
  expect(GOOD.secret).toBe("whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=");
  expect(wrong({})).toEqual([]);
  expect(webhookBody(GOOD).types).toEqual(["node.*", "allocation.*"]);
});

it("says which field is wrong", () => {
  expect(wrong({ url: "hooks.example" })).toEqual(["url"]);
  expect(wrong({ types: " " })).toEqual(["types"]);
  expect(wrong({ types: Array(21).fill("a").join(" ") })).toEqual(["types"]);
  expect(wrong({ description: "a".repeat(201) })).toEqual(["description"]);
  expect(wrong({ secret: "secret" })).toEqual(["secret"]);
});
