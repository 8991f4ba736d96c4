import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { ConsoleStage } from "../page/console/console-stage.ts";
import { SHOWN } from "../page/console/screens.ts";

const FOLDER = join(import.meta.dirname, "../../docs/pictures");
/** The largest picture that the repository takes. */
const MOST_BYTES = 150_000;

/** The pictures of docs/console.md: the name of the file, the screen as `screens.ts` names it, the colours, and the height of the window. */
const PICTURES = [
  ["console-overview", "Overview", "light", 800],
  ["console-overview-dark", "Overview", "dark", 800],
  ["console-nodes", "Nodes", "light", 620],
  ["console-racks", "Racks", "light", 800],
  ["console-node", "Node", "light", 800],
  ["console-operation", "Operation", "dark", 800],
  ["console-repair", "Repair", "light", 800],
] as const;

/** The failures of the fleet as a hub would name them. */
const FAILURES = `update workflows set failure_code = 'maas_unreachable',
  next_action = 'Check that MAAS and the secret store answer, then retry the stage.' where status = 'failed_retryable'`;

let stage: ConsoleStage | undefined;
beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true });
  stage = await ConsoleStage.set();
  await stage.api.database.database.pool.query(FAILURES);
});
afterEach(() => stage?.clear());
afterAll(() => stage?.close());

it.each(PICTURES)("draws %s", async (file, name, colorScheme, height) => {
  const shown = SHOWN.find((one) => one.name === name);
  if (stage === undefined || shown === undefined) throw new Error(`there is no screen ${name}`);
  const visit = await stage.operator(shown.path, { colorScheme, viewport: { width: 1280, height } });
  await shown.ready(visit);
  // The pointer and the focus would leave their marks in the picture.
  await visit.page.mouse.move(0, 0);
  await visit.page.evaluate("document.activeElement?.blur()");
  const path = join(FOLDER, `${file}.png`);
  await visit.page.screenshot({ path, animations: "disabled" });
  expect(statSync(path).size).toBeLessThan(MOST_BYTES);
});
