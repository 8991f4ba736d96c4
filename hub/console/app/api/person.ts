/** The person of a session, as the hub names a caller. */
interface Person {
  readonly name: string;
  readonly role: string;
}

/** A name for the person with the role, so that what one person has seen is never shown to another one. */
export const personKey = ({ name, role }: Person): string => JSON.stringify([name, role]);
