import { expect, test } from "vitest";
import { MAAS_STATUS } from "../../../../shared/maas-status.ts";
import { ALLOWED, allStatuses, mayChange, NODE_TRANSITIONS, STATUS, STATUS_LABEL } from "./statuses.ts";

test("there are 23 statuses, each with a label and a row in the table", () => {
  expect(allStatuses()).toHaveLength(23);
  for (const status of allStatuses()) {
    expect(STATUS_LABEL[status]).not.toBe("");
    expect(NODE_TRANSITIONS[status].length).toBeGreaterThan(0);
    for (const next of NODE_TRANSITIONS[status]) expect(allStatuses()).toContain(next);
  }
});

test("labels are the words that clients see, also where their order is unusual", () => {
  expect(STATUS_LABEL[STATUS.failed_releasing]).toBe("Releasing failed");
  expect(STATUS_LABEL[STATUS.failed_entering_rescue_mode]).toBe("Failed to enter rescue mode");
});

test("the transitions that the hub needs are allowed, and those that it must not expect are refused", () => {
  expect(mayChange(STATUS.new, STATUS.commissioning)).toBe(true);
  expect(mayChange(STATUS.deploying, STATUS.allocated)).toBe(true);
  expect(mayChange(STATUS.broken, STATUS.deployed)).toBe(true);
  expect(mayChange(STATUS.new, STATUS.deploying)).toBe(false);
  expect(mayChange(STATUS.ready, STATUS.deploying)).toBe(false);
  expect(mayChange(STATUS.failed_deployment, STATUS.deploying)).toBe(false);
});

test("an operation accepts only statuses from which its own change is possible", () => {
  for (const status of ALLOWED.commission) expect(mayChange(status, STATUS.commissioning)).toBe(true);
  for (const status of ALLOWED.release) expect(mayChange(status, STATUS.releasing)).toBe(true);
  for (const status of ALLOWED.test) expect(mayChange(status, STATUS.testing)).toBe(true);
  for (const status of ALLOWED.rescue) expect(mayChange(status, STATUS.entering_rescue_mode)).toBe(true);
  for (const status of ALLOWED.exitRescue) expect(mayChange(status, STATUS.exiting_rescue_mode)).toBe(true);
});

test("the hub's list of statuses is the same", () => {
  expect(MAAS_STATUS).toEqual(STATUS);
});
