/** The person who is signed in, with the name and the role that the hub knows. */
interface Person {
  readonly name: string;
  readonly role: string;
}

/** A key for the cached data of one person with one role, so that the console never shows one person's data to another person. */
export const personKey = ({ name, role }: Person): string => JSON.stringify([name, role]);
