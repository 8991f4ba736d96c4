import { getTableColumns, getTableName, is } from "drizzle-orm";
import { PgTable } from "drizzle-orm/pg-core";
import { expect, it } from "vitest";
import * as schema from "../db/schema/index.ts";

it("every column that holds a secret's path is known", () => {
  const columns = Object.values(schema)
    .filter((one) => is(one, PgTable))
    .flatMap((table) => Object.values(getTableColumns(table)).map(({ name }) => `${getTableName(table)}.${name}`));
  expect(columns.length).toBeGreaterThan(200);
  // A developer must add each new database column with a secret's path to namedSecrets. For a column whose name only suggests a secret, the test's
  // list says why the copy misses no secret.
  expect(columns.filter((name) => /[.].*(path|secret|vault|cred|password|login)/.test(name)).sort()).toEqual([
    // `allocations.login_user` holds the name of a tenant's account, which has no password.
    "allocations.login_user",
    // `installation.secret_store_id` holds the id of the secret store, which `copy-secrets` copies last.
    "installation.secret_store_id",
    // `maas_credential_uses` records uses of secrets whose paths a site or a power override also names, so the copy misses no secret.
    "maas_credential_uses.path",
    "maas_power_credential_overrides.vault_path",
    "maas_sites.api_token_vault_path",
    "maas_sites.default_power_creds_vault_path",
    "maas_sites.deploy_password_vault_path",
    // `node_decommissions.secrets` lists the secrets that a full decommission chose to remove. Power overrides and nodes also name the paths of the
    // chosen secrets.
    "node_decommissions.secrets",
  ]);
});
