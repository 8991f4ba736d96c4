import type { Body } from "../api/schema.ts";
import { changedFields } from "./changed-fields.ts";
import type { Errors } from "./form-errors.ts";
import { description, keyName, MOST_KEYS_OF_AN_ACCOUNT, tenant } from "./tenant-checks.ts";

export interface GroupValues {
  readonly name: string;
  readonly tenant: string;
  readonly description: string;
  readonly key_ids: readonly string[];
  /** An SSH key group with an empty `site_ids` may be used at all sites. */
  readonly site_ids: readonly string[];
}

export interface Group {
  readonly name: string;
  readonly tenant: string;
  readonly description: string;
  readonly key_ids: readonly string[];
  readonly site_ids: readonly string[] | null;
}

/** A stored SSH key with the sites at which it may be used; `site_ids` is null if it may be used at all sites. */
export interface KnownKey {
  readonly id: string;
  readonly name: string;
  readonly site_ids: readonly string[] | null;
}

export const NO_GROUP: GroupValues = { name: "", tenant: "", description: "", key_ids: [], site_ids: [] };

/** An SSH key may be in a key group if the key may be used at all sites of the group. */
const fits = ({ site_ids: ofKey }: KnownKey, ofGroup: readonly string[]): boolean =>
  ofKey === null || (ofGroup.length > 0 && ofGroup.every((site) => ofKey.includes(site)));

function membersError({ key_ids: ids, site_ids: sites }: GroupValues, known: readonly KnownKey[]): string | undefined {
  if (ids.length > MOST_KEYS_OF_AN_ACCOUNT) return `has more than ${MOST_KEYS_OF_AN_ACCOUNT} keys`;
  const odd = known.filter((key) => ids.includes(key.id) && !fits(key, sites)).map(({ name }) => name);
  return odd.length === 0 ? undefined : `has keys that may not be used at all sites of the group: ${odd.join(", ")}`;
}

/**
 * Checks an SSH key group against the stored SSH keys of its tenant. A key group that is limited to some sites stays limited, because the API cannot
 * extend it to all sites.
 */
export const checkGroup = (values: GroupValues, known: readonly KnownKey[], before?: Group): Errors<GroupValues> => ({
  name: keyName(values.name),
  tenant: tenant(values.tenant),
  description: description(values.description),
  key_ids: membersError(values, known),
  site_ids:
    values.site_ids.length === 0 && (before?.site_ids ?? null) !== null
      ? "is missing: a group that is limited to sites keeps at least one"
      : undefined,
});

export const valuesOf = (group: Group): GroupValues => ({ ...group, site_ids: group.site_ids ?? [] });

const sitesOf = (ids: readonly string[]) => (ids.length === 0 ? {} : { site_ids: [...ids] });

export const groupBody = (values: GroupValues): Body<"createSshKeyGroup"> => ({
  name: values.name.trim(),
  tenant: values.tenant.trim(),
  description: values.description.trim(),
  key_ids: [...values.key_ids],
  ...sitesOf(values.site_ids),
});

/** The request to change an SSH key group contains only the fields that the person has changed. */
export const groupPatch = (before: Group, values: GroupValues): Body<"updateSshKeyGroup"> => {
  const { tenant: _, ...now } = groupBody(values);
  return changedFields(before, now);
};
