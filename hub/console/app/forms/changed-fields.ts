/**
 * Returns the fields of a form that differ from the object as the hub has it. The request for a change contains only the fields that differ from the
 * hub's object.
 */
export const changedFields = <Fields extends object>(before: object, after: Fields): Partial<Fields> =>
  Object.fromEntries(
    Object.entries(after).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify((before as Record<string, unknown>)[name]),
    ),
  ) as Partial<Fields>;
