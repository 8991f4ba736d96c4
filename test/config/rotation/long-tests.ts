import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";

/**
 * The measured processor seconds of test files and steps: the test's own process, its child processes and its part of PostgreSQL. The figures only have to
 * be right in proportion, because they only divide the long tests into groups of about equal time. A test file of another suite than those below
 * that takes at least ten seconds belongs in this table, so that it becomes a long test.
 */
const MEASURED: Readonly<Record<string, number>> = {
  // Steps of .ci/run that are not test files of `npm test`.
  "test-page": 490,
  "first-boot": 120,
  "test-npm-postgres": 90,
  "test/properties/every-stage-answers.test.ts": 211,
  "test/properties/every-stage-changes.test.ts": 201,
  "test/integration/hub/upgrade.test.ts": 190,
  "test/e2e/kill-turnovers.test.ts": 168,
  "test/properties/every-stage.test.ts": 166,
  "test/e2e/several-hubs.test.ts": 165,
  "test/integration/workflows/batch.test.ts": 158,
  "test/e2e/secret-hygiene.test.ts": 138,
  "test/e2e/several-hubs-database.test.ts": 114,
  "test/e2e/kill-anything.test.ts": 111,
  "test/properties/every-stage-silence.test.ts": 83,
  "test/packages/packages.test.ts": 73,
  "test/e2e/several-hubs-failover.test.ts": 69,
  "test/e2e/older-database.test.ts": 67,
  "test/e2e/two-versions.test.ts": 62,
  "test/e2e/validation-steps.test.ts": 60,
  "agent/system/storage/purge-mounted.test.ts": 56,
  "test/integration/cli/documented-commands.test.ts": 53,
  "test/integration/api/role-writes.test.ts": 49,
  "test/e2e/metrics.test.ts": 47,
  "test/integration/hub/backup.test.ts": 47,
  "test/e2e/kill-rotation.test.ts": 45,
  "test/properties/task-killed.test.ts": 44,
  "test/properties/reinstall-guards.test.ts": 40,
  "test/properties/gpu-scrub-killed.test.ts": 39,
  "test/properties/reimage.test.ts": 39,
  "test/integration/workflows/onboarding-workflow.test.ts": 36,
  "test/integration/agents/hostile-hosts.test.ts": 33,
  "test/integration/sites/copy-secrets.test.ts": 33,
  "agent/system/storage/purge-disk.test.ts": 32,
  "test/e2e/every-stage.test.ts": 31,
  "test/integration/accounts/revoke-residue.test.ts": 31,
  "test/integration/cli/verify-record.test.ts": 31,
  "test/properties/reinstall.test.ts": 30,
  "test/integration/sites/vault-hub.test.ts": 29,
  "test/integration/api/role-reads.test.ts": 28,
  "test/properties/gpu-cleaning.test.ts": 27,
  "test/properties/maas-outage.test.ts": 27,
  "test/integration/agents/agent-channel.test.ts": 25,
  "test/e2e/several-hubs-drift.test.ts": 23,
  "test/properties/onboarding-recovery.test.ts": 22,
  "test/properties/full-decommission.test.ts": 21,
  "test/integration/cli/cli.test.ts": 20,
  "test/integration/sign-in/cli-login.test.ts": 20,
  "test/integration/sign-in/page-sign-in.test.ts": 20,
  "test/properties/gpu-power-cycle.test.ts": 20,
  "test/properties/node-filters.test.ts": 20,
  "test/properties/stage-policies.test.ts": 20,
  "test/integration/accounts/grant.test.ts": 19,
  "agent/tasks/storage-cleanup.test.ts": 18,
  "test/integration/sites/vault-rotation.test.ts": 17,
  "test/properties/onboarding-again.test.ts": 17,
  "test/integration/api/repairs.test.ts": 16,
  "test/integration/console/serve-console.test.ts": 16,
  "test/integration/hub/operate-guide.test.ts": 16,
  "test/integration/workflows/timeouts.test.ts": 16,
  "test/properties/decommission-secrets.test.ts": 16,
  "test/properties/tenancy-ends.test.ts": 16,
  "agent/system/storage/empty-folder.test.ts": 15,
  "agent/tasks/validate-clean.test.ts": 15,
  "test/integration/accounts/revoke-processes.test.ts": 15,
  "test/properties/allocation-life.test.ts": 15,
  "test/properties/cancelled-onboarding.test.ts": 15,
  "test/integration/api/api-borders.test.ts": 14,
  "test/integration/audit/audit-chain.test.ts": 13,
  "test/integration/cli/cli-names.test.ts": 13,
  "test/integration/hub/restricted-role.test.ts": 13,
  "agent/gpu/scrub.test.ts": 12,
  "agent/system/workers/workers.test.ts": 12,
  "test/integration/api/api-node-bulk.test.ts": 12,
  "test/integration/api/every-read.test.ts": 12,
  "test/integration/workflows/decommission-batch.test.ts": 12,
  "agent/system/residue-on-linux.test.ts": 11,
  "test/integration/observation/reconciler.test.ts": 11,
  "test/integration/sites/preflight.test.ts": 11,
  "test/integration/workflows/allocation-ends.test.ts": 11,
  "test/integration/workflows/triggered-discovery.test.ts": 11,
  "test/properties/admission.test.ts": 11,
  "test/properties/reimaged-disks.test.ts": 11,
  "test/properties/first-boot-verdict.test.ts": 10,
};

/** The suites of which every test file is a long test, because it starts a hub, or works on a database with many rows. */
const SUITES = "test/{db,properties,integration,e2e,packages}/**/*.test.ts";
/** The processor seconds of a test file of these suites that is not in the table. */
const USUAL = 5;

/** All long tests with their processor seconds: test files, and steps of .ci/run. */
export const LONG_TESTS: Readonly<Record<string, number>> = {
  ...Object.fromEntries(
    globSync(SUITES, { cwd: fileURLToPath(new URL("../../..", import.meta.url)) })
      .sort()
      .map((file) => [file, USUAL]),
  ),
  ...MEASURED,
};
