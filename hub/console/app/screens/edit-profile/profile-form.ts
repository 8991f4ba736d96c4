import type { Body } from "../../api/schema.ts";
import { changedFields } from "../../forms/changed-fields.ts";
import { partsOf } from "../../forms/checks.ts";
import type { Errors } from "../../forms/form-errors.ts";
import { FIELDS, type Field, type Profile } from "./profile-fields.ts";

/** The fields of a profile as the form holds them: strings for typed text, and booleans for yes or no. `is_active` is the profile's status. */
export type ProfileValues = Readonly<Record<string, string | boolean>> & { readonly is_active: boolean };

const typedOf = (field: Field, profile: Profile): string | boolean => {
  const value = profile[field.name];
  if (typeof value === "boolean") return value;
  return Array.isArray(value) ? value.join(", ") : String(value ?? "");
};

export const valuesOf = (profile: Profile): ProfileValues => ({
  ...Object.fromEntries(FIELDS.map((field) => [field.name, typedOf(field, profile)])),
  is_active: profile.status === "active",
});

export const checkProfile = (values: ProfileValues): Errors<ProfileValues> =>
  Object.fromEntries(
    FIELDS.flatMap((field) =>
      "check" in field ? [[field.name, field.check(String(values[field.name] ?? ""))] as const] : [],
    ),
  ) as Errors<ProfileValues>;

function sentOf(field: Field, typed: string | boolean | undefined): unknown {
  if (field.kind === "flag") return typed === true;
  const text = String(typed ?? "").trim();
  if (field.kind === "list") return partsOf(text);
  if (text === "" && "empty" in field) return null;
  return field.kind === "number" ? Number(text) : text;
}

/** The request that changes a profile, with only the fields that the person has changed. */
export const profilePatch = (profile: Profile, values: ProfileValues): Body<"updateMaasSiteProfile"> =>
  changedFields(profile, {
    ...Object.fromEntries(FIELDS.map((field) => [field.name, sentOf(field, values[field.name])])),
    status: values.is_active ? "active" : "disabled",
  }) as Body<"updateMaasSiteProfile">;
