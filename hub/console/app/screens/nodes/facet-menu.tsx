import { Button, Checkbox, Popover, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { Icon } from "../../look/icons.tsx";
import type { Facets } from "./node-questions.ts";
import classes from "./nodes.module.css";

type Values = Facets["facets"]["status"]["values"];

interface Props {
  readonly title: string;
  readonly values: Values;
  /** The number of filter values that the hub's answer omits. */
  readonly more: number;
  readonly chosen: readonly string[];
  /** False for a filter of which the API accepts only one value. */
  readonly several: boolean;
  readonly nameOf: (value: string) => string;
  readonly onChange: (chosen: readonly string[]) => void;
}

/** A filter menu with at least this many values has a field to search the values. */
const SEARCH_FROM = 12;

/** A menu that filters nodes by one property, with the number of nodes for each value. */
export function FacetMenu(props: Props): ReactNode {
  const { title, chosen } = props;
  return (
    <Popover position="bottom-start" width={280} trapFocus withinPortal={false}>
      <Popover.Target>
        <Button
          variant={chosen.length > 0 ? "light" : "default"}
          rightSection={<Icon name="chevron" size={12} />}
          aria-label={chosen.length > 0 ? `${title} ${chosen.length} chosen` : title}
        >
          {title} {chosen.length > 0 ? <span className={classes.facetCount}>{chosen.length}</span> : null}
        </Button>
      </Popover.Target>
      <Popover.Dropdown p="xs">
        <FacetValues {...props} />
      </Popover.Dropdown>
    </Popover>
  );
}

function FacetValues({ title, values, more, chosen, several, nameOf, onChange }: Props): ReactNode {
  const [typed, setTyped] = useState("");
  // A selected filter value stays in the menu even if no node has it any more, so that a person can deselect it.
  const absent = chosen
    .filter((one) => !values.some(({ value }) => value === one))
    .map((value) => ({ value, count: 0 }));
  const shown = [...values, ...absent].filter(({ value }) => nameOf(value).toLowerCase().includes(typed.toLowerCase()));
  const toggle = (value: string, on: boolean): void => {
    if (several) onChange(on ? [...chosen, value] : chosen.filter((one) => one !== value));
    else onChange(on ? [value] : []);
  };
  return (
    <>
      {values.length >= SEARCH_FROM ? (
        <TextInput
          aria-label={`Find a value of ${title.toLowerCase()}`}
          placeholder="Find a value"
          mb="xs"
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
      ) : null}
      <ul className={classes.values}>
        {shown.map(({ value, count }) => (
          <li key={value} className={classes.value}>
            <Checkbox
              label={nameOf(value)}
              checked={chosen.includes(value)}
              onChange={(event) => toggle(value, event.currentTarget.checked)}
            />
            <span className={classes.valueCount}>{count.toLocaleString("en")}</span>
          </li>
        ))}
      </ul>
      {shown.length === 0 ? <p className={classes.note}>No node has a value.</p> : null}
      {more > 0 ? <p className={classes.note}>{more.toLocaleString("en")} rarer values are left out.</p> : null}
    </>
  );
}
