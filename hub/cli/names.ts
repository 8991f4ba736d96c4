import type { Asked } from "./arguments.ts";
import type { Field, NamedBy, Operation } from "./description.ts";
import { UnknownName, UsageError } from "./errors.ts";
import { flagOf, namedBy } from "./operation.ts";
import { forPeople } from "./output.ts";

type Item = Readonly<Record<string, unknown>>;
interface Lists {
  readonly operations: readonly Operation[];
  /** Reads all items of an API list. Reads all items of an API list; `asked` holds the parameters of the API operation that lists them. */
  readonly ask: (list: Operation, asked: Asked) => Promise<readonly Item[]>;
  readonly note: (text: string) => void;
  /** The flag of a field, as the operator writes it. */
  readonly flag?: (field: Pick<Field, "name">) => string;
}

/** An argument or flag of the command line that takes the id or the name of an object. */
interface Place {
  /** The argument or flag as the help writes it, for example `<id>` or `--site-id`. */
  readonly label: string;
  readonly by: NamedBy;
  readonly text: string;
  /** True if a name may also stand for the newest finished or deleted object, because the command only reads this one object. */
  readonly mayBeOver: boolean;
  readonly put: (id: string) => void;
  /**
   * The id of the object that the argument or flag names, once the command line has begun to look the id up. Several arguments and flags of one
   * command may share one look-up of an id.
   */
  id?: Promise<string>;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Replaces the names of objects in a command by their ids. A value that looks like an id counts as an id. For a name, the command line searches the
 * list that the API description gives for the parameter, and exactly one object must match. The command line never guesses an object, because a
 * command may be impossible to undo. Only a command that reads one object, such as `get-onboarding`, takes the newest finished object if no unfinished
 * object has the name. `note` tells the operator so.
 */
export async function withIds(operation: Operation, given: Asked, lists: Lists): Promise<Asked> {
  const asked: Asked = {
    words: { ...given.words },
    query: new URLSearchParams(given.query),
    body: isRecord(given.body) ? { ...given.body } : given.body,
  };
  const places = placesOf(operation, asked, lists.flag ?? flagOf);
  const ids = await Promise.all(places.map((place) => idOf(place, places, lists)));
  places.forEach((place, index) => void place.put(ids[index] ?? place.text));
  return asked;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === "object" && !Array.isArray(value);

function placesOf(
  operation: Operation,
  { words, query, body }: Asked,
  flag: (field: Pick<Field, "name">) => string,
): Place[] {
  const place = (
    field: Pick<Field, "schema">,
    label: string,
    text: unknown,
    put: (id: string) => void,
    mayBeOver = false,
  ): Place[] => {
    const by = namedBy(field.schema);
    return by === undefined || typeof text !== "string" ? [] : [{ label, by, text, mayBeOver, put }];
  };
  /** Returns a `Place` for each object whose name or id a field of the request body holds; a field may name one object or several. */
  const ofBody = (field: Field): Place[] => {
    const [label, value, { items }] = [`--${flag(field)}`, fields[field.name], field.schema];
    if (items === undefined || !Array.isArray(value))
      return place(field, label, value, (id) => void Object.assign(fields, { [field.name]: id }));
    const ids: unknown[] = [...value];
    fields[field.name] = ids;
    return ids.flatMap((text, index) => place({ schema: items }, label, text, (id) => void ids.splice(index, 1, id)));
  };
  const fields = isRecord(body) ? body : {};
  return [
    ...operation.arguments.flatMap((field) =>
      place(
        field,
        `<${field.name}>`,
        words[field.name],
        (id) => void Object.assign(words, { [field.name]: id }),
        operation.method === "GET",
      ),
    ),
    ...operation.query.flatMap((field) =>
      place(field, `--${flag(field)}`, query.get(field.name), (id) => query.set(field.name, id)),
    ),
    ...(operation.body ?? []).flatMap(ofBody),
  ];
}

function idOf(place: Place, places: readonly Place[], lists: Lists): Promise<string> {
  place.id ??= lookUp(place, places, lists);
  return place.id;
}

async function lookUp(place: Place, places: readonly Place[], lists: Lists): Promise<string> {
  if (UUID.test(place.text)) return place.text;
  const list = lists.operations.find(({ id }) => id === place.by.list);
  // If the hub has no list for an object's name, the command line sends the name unchanged, and the hub's error says which values it accepts.
  if (list === undefined) return place.text;
  const items = await lists.ask(list, await askedFor(place, list, places, lists));
  const over = place.mayBeOver ? newestOver(place, items) : null;
  if (over === null) return theOne(place, list, items);
  lists.note(`${place.text} is ${over.state}; this is the newest one of that ${place.by.name}.`);
  return over.id;
}

/**
 * Builds the request for the API list in which the command line looks for an object's name. The request for the API list filters the list by the
 * object's name, and by other objects that the operator's command names. For example, the command line looks for a profile's name among the profiles
 * of the site in the command.
 */
async function askedFor(place: Place, list: Operation, places: readonly Place[], lists: Lists): Promise<Asked> {
  const other = (field: Field): Place | undefined =>
    places.find(({ by }) => by.list === namedBy(field.schema)?.list && by.list !== place.by.list);
  const words: Record<string, string> = {};
  for (const field of list.arguments) {
    const known = other(field);
    if (known === undefined)
      throw new UsageError(
        `${place.label} takes an id here, because ${list.command} needs <${field.name}>, which this command does not have.`,
      );
    words[field.name] = await idOf(known, places, lists);
  }
  const query = new URLSearchParams({ [place.by.name]: place.text });
  // The request for an API list also asks for items that no longer own their name, for example deleted nodes. If a listed object no longer owns the
  // name that the operator gave, the error can say why the hub refuses the name.
  if (place.by.unless?.shown !== undefined) query.set(place.by.unless.shown, "true");
  for (const field of list.query) {
    const known = other(field);
    if (known !== undefined) query.set(field.name, await idOf(known, places, lists));
  }
  return { words, query, body: null };
}

/** Returns the newest object of a name if only finished or deleted objects have the name, with its state; otherwise null. */
function newestOver(
  { by, text }: Place,
  items: readonly Item[],
): { readonly id: string; readonly state: string } | null {
  const { unless } = by;
  const named = items.filter((item) => item[by.name] === text);
  if (unless === undefined || !named.every((item) => unless.values.includes(String(item[unless.field])))) return null;
  // Lists of operations begin with the newest one. The list of nodes is sorted by hostname, so the time of creation decides which object is the
  // newest.
  const [newest] = named.toSorted(
    (a, b) => Date.parse(String(b["created_at"])) - Date.parse(String(a["created_at"])) || 0,
  );
  const id = newest?.[by.id];
  return typeof id === "string" ? { id, state: String(newest?.[unless.field]) } : null;
}

function theOne({ label, by, text }: Place, list: Operation, items: readonly Item[]): string {
  const { unless } = by;
  const named = items.filter((item) => item[by.name] === text);
  const meant = named.filter((item) => unless === undefined || !unless.values.includes(String(item[unless.field])));
  const [only, ...others] = meant;
  const id = only?.[by.id];
  if (others.length === 0 && typeof id === "string") return id;
  const about = `${label}: ${by.name} ${text}`;
  if (named.length === 0) throw new UnknownName(`${about} is in no item of ${list.command}. Nothing was done.`);
  const why =
    meant.length > 0
      ? `is in ${meant.length} items of ${list.command}`
      : `is in no item of ${list.command} but those whose ${unless?.field} is ${unless?.values.join(" or ")}`;
  const candidates = forPeople({ items: meant.length > 0 ? meant : named });
  throw new UsageError(`${about} ${why}. Nothing was done; give the id of the right one:\n${candidates}`);
}
