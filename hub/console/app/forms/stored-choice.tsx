import { Checkbox, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import classes from "./forms.module.css";

/** A stored SSH key or SSH key group, as a form offers it to a person. */
export interface Stored {
  readonly id: string;
  readonly name: string;
  /** A text by which a person recognizes the stored SSH key or key group, for example the key's fingerprint. */
  readonly about: string;
}

interface Props {
  /** The plural word in lower case for the things that a person can choose in the field, for example `keys`. */
  readonly what: string;
  readonly stored: readonly Stored[];
  readonly chosen: readonly string[];
  readonly error?: string | undefined;
  readonly onChange: (ids: string[]) => void;
}

/** A list with at least this many stored SSH keys or key groups has a search field. */
const SEARCH_FROM = 10;
/** The largest number of stored SSH keys or key groups that the form lists at once. */
const MOST_SHOWN = 100;

/**
 * Returns the chosen SSH keys or key groups that do not exist any more, or that the person may not see. A chosen SSH key or key group that no longer
 * exists stays visible, so that the person can deselect it.
 */
const unknownOf = (stored: readonly Stored[], chosen: readonly string[]): Stored[] =>
  chosen
    .filter((id) => stored.every((one) => one.id !== id))
    .map((id) => ({ id, name: id.slice(0, 8), about: "Not found, or outside of your sites." }));

/** A form field in which a person chooses some of a tenant's stored SSH keys or key groups. What is chosen stays in sight. */
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
