import { expect, it } from "vitest";
import { askedStore, forgetAllAsked, forgetAsked, rememberAsked } from "./asked-list.ts";

it("keeps the requests of this tab until they are closed or the session ends", () => {
  let told = 0;
  const stop = askedStore.subscribe(() => {
    told += 1;
  });
  for (const id of ["1", "2", "3"]) rememberAsked({ id, what: `Remove host ${id}` });
  forgetAsked("2");
  expect(askedStore.now().map(({ id }) => id)).toEqual(["1", "3"]);
  forgetAllAsked();
  expect(askedStore.now()).toEqual([]);
  expect(told).toBe(5);
  stop();
});
