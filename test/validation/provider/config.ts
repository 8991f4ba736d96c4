import { join } from "node:path";
import { stringify } from "yaml";
import type { Step } from "./step.ts";
import { SUITES, type SuiteName } from "./steps.ts";

const RUN = join(import.meta.dirname, "main.ts");

const toCommand = ({ name, phase, seconds, args, secret = [] }: Step) => ({
  name,
  phase,
  continue_on_failure: true,
  command: `${process.execPath} ${RUN} ${name}`,
  args: Object.entries(args).flatMap(([key, template]) => [`--${key}`, template]),
  sensitive_args: secret.map((key) => `--${key}`),
  timeout: seconds,
});

/**
 * Returns the configuration of a neutral suite with this provider's steps. `source` is the folder of the suite's checkout, and `settings` are the values of
 * the templates in the steps' arguments.
 */
export function configOf(suite: SuiteName, source: string, settings: Readonly<Record<string, string>>): string {
  const group = suite.replaceAll("-", "_");
  return stringify({
    import: [join(source, "isvctl/configs/suites", `${suite}.yaml`)],
    version: "1.0",
    commands: { [group]: { phases: ["setup", "test", "teardown"], steps: SUITES[suite].map(toCommand) } },
    tests: { cluster_name: `muster-${suite}`, settings, exclude: { labels: ["ssh", "dpu"] } },
  });
}
