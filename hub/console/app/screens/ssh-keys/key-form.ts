import type { Body } from "../../api/schema.ts";
import type { Errors } from "../../forms/form-errors.ts";
import { sshKeyError } from "../../forms/ssh-key.ts";
import { keyName, tenant } from "../../forms/tenant-checks.ts";

export interface KeyValues {
  readonly name: string;
  readonly tenant: string;
  readonly public_key: string;
  /** A stored SSH key without sites may be used at all sites. */
  readonly site_ids: readonly string[];
}

export const checkKey = (values: KeyValues): Errors<KeyValues> => ({
  name: keyName(values.name),
  tenant: tenant(values.tenant),
  public_key: sshKeyError(values.public_key.trim()),
});

export const keyBody = (values: KeyValues): Body<"createSshKey"> => ({
  name: values.name.trim(),
  tenant: values.tenant.trim(),
  public_key: values.public_key.trim(),
  ...(values.site_ids.length === 0 ? {} : { site_ids: [...values.site_ids] }),
});
