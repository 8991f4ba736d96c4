import { Checkbox, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import classes from "./forms.module.css";

/** A stored key or a group, as a person chooses it. */
export interface Stored {
  readonly id: string;
  readonly name: string;
  /** A text that tells the stored key or group from others, for example the fingerprint. */
  readonly about: string;
}

interface Props {
  /** The word for what the person chooses, in the plural and in lower case, for example `keys`. */
  readonly what: string;
  readonly stored: readonly Stored[];
  readonly chosen: readonly string[];
  readonly error?: string | undefined;
  readonly onChange: (ids: string[]) => void;
}

/** From this number of stored keys or groups on, the choice has a search field. */
const SEARCH_FROM = 10;
/** The largest number of keys or groups that the choice shows at once. */
const MOST_SHOWN = 100;

/**
 * The chosen keys or groups that are not, or no longer, among the stored ones that the person may see. A chosen key or group that is no longer stored
 * stays visible, so that the person can remove it from the choice.
 */
const unknownOf = (stored: readonly Stored[], chosen: readonly string[]): Stored[] =>
  chosen
    .filter((id) => stored.every((one) => one.id !== id))
    .map((id) => ({ id, name: id.slice(0, 8), about: "Not found, or outside of your sites." }));

/** Chooses some of the stored keys or groups of a tenant. What is chosen stays in sight. */
export function StoredChoice({ what, stored, chosen, error, onChange }: Props): ReactNode {
  const [typed, setTyped] = useState("");
  const fits = ({ name, about }: Stored): boolean => `${name} ${about}`.toLowerCase().includes(typed.toLowerCase());
  const found = [...unknownOf(stored, chosen), ...stored.filter((one) => chosen.includes(one.id) || fits(one))];
  return (
    <>
      {stored.length >= SEARCH_FROM ? (
        <TextInput
          aria-label={`Find ${what}`}
          placeholder={`Find ${what}`}
          mb="xs"
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
      ) : null}
      <Checkbox.Group label={`The tenant's ${what}`} error={error} value={[...chosen]} onChange={onChange}>
        <div className={classes.choice}>
          {found.slice(0, MOST_SHOWN).map(({ id, name, about }) => (
            <Checkbox key={id} value={id} label={name} description={about} mb={4} />
          ))}
        </div>
      </Checkbox.Group>
      {stored.length === 0 ? `The tenant has no stored ${what}.` : null}
      {found.length > MOST_SHOWN ? `${found.length - MOST_SHOWN} more. Type a part of the name to find them.` : null}
    </>
  );
}
