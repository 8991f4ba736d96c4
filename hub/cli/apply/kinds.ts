import { operationNamed } from "../operation.ts";
import { shippedOperations } from "../table/shipped.ts";

interface Kind {
  readonly ofSite: boolean;
  /** The field that names the object within its site or hub; null if a site has only one object of this kind. */
  readonly nameField: string | null;
  readonly fields: () => readonly string[];
}

/** The fields that the request of an API operation accepts. */
const fieldsOf = (...ids: readonly string[]): string[] =>
  ids.flatMap((id) => (operationNamed(id, shippedOperations()).body ?? []).map(({ name }) => name));

/** The kinds of objects that `muster apply` creates and updates. */
export const KINDS = {
  sku: { ofSite: false, nameField: "id", fields: () => fieldsOf("createSku", "updateSku") },
  profile: {
    ofSite: true,
    nameField: "name",
    fields: () => fieldsOf("createMaasSiteProfile", "updateMaasSiteProfile"),
  },
  policy: { ofSite: true, nameField: null, fields: () => fieldsOf("updateMaasSitePolicy") },
  roce: { ofSite: true, nameField: null, fields: () => ["rows"] },
} as const satisfies Record<string, Kind>;
export type KindName = keyof typeof KINDS;
export const isKind = (name: string): name is KindName => Object.hasOwn(KINDS, name);
