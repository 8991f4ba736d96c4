/** Returns the fields of a form that differ from the object as the hub has it. A request for a change has only these. */
export const changedFields = <Fields extends object>(before: object, after: Fields): Partial<Fields> =>
  Object.fromEntries(
    Object.entries(after).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify((before as Record<string, unknown>)[name]),
    ),
  ) as Partial<Fields>;
