import { Button, NativeSelect, TextInput } from "@mantine/core";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useSites } from "../api/sites.ts";
import classes from "./filters.module.css";

const TYPING_MS = 350;

/** The row of a list's filters. */
export const FilterRow = ({ children }: { readonly children: ReactNode }): ReactNode => (
  <search className={classes.filters} aria-label="Filters">
    {children}
  </search>
);

/** The filters of a list, whose values are kept in the URL. */
export const Filters = ({
  onClear,
  children,
}: {
  /** The function that removes all filters of the list; undefined if no filter is set. */
  readonly onClear: (() => void) | undefined;
  readonly children: ReactNode;
}): ReactNode => (
  <FilterRow>
    {children}
    {onClear === undefined ? null : (
      <Button variant="subtle" onClick={onClear}>
        Clear all
      </Button>
    )}
  </FilterRow>
);

interface ValueProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}

export interface Choice {
  readonly value: string;
  readonly label: string;
}

/** A filter with a few values. */
export const FilterSelect = ({
  label,
  value,
  choices,
  onChange,
  all = "all",
}: ValueProps & {
  readonly choices: readonly Choice[];
  /** What the list shows without the filter. */
  readonly all?: string;
}): ReactNode => (
  <NativeSelect
    aria-label={label}
    data={[{ value: "", label: `${label}: ${all}` }, ...choices]}
    value={value ?? ""}
    onChange={(event) => onChange(event.currentTarget.value === "" ? undefined : event.currentTarget.value)}
  />
);

/** A filter by site. */
export function SiteFilter({ value, onChange }: Omit<ValueProps, "label">): ReactNode {
  const sites = [...useSites().values()];
  return (
    <FilterSelect
      label="Site"
      value={value}
      choices={sites.map(({ id, name }) => ({ value: id, label: name }))}
      onChange={onChange}
    />
  );
}

/** A filter that a person types. The typed filter text goes into the URL after a short pause, so that a whole word causes one request only. */
export function FilterText({
  label,
  value,
  onChange,
  find = false,
}: ValueProps & { readonly find?: boolean }): ReactNode {
  const [typed, setTyped] = useState(value ?? "");
  const sent = useRef(value);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    // A link or the browser's Back button has changed the URL.
    if (value !== sent.current) setTyped(value ?? "");
    sent.current = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const send = (text: string): void => {
    clearTimeout(timer.current);
    const next = text.trim() === "" ? undefined : text.trim();
    if (next === sent.current) return;
    sent.current = next;
    onChange(next);
  };
  return (
    <TextInput
      className={classes.text}
      aria-label={label}
      placeholder={label}
      value={typed}
      spellCheck={false}
      autoComplete="off"
      onChange={(event) => {
        const text = event.currentTarget.value;
        setTyped(text);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => send(text), TYPING_MS);
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter") send(typed);
      }}
      {...(find ? { "data-find": true } : {})}
    />
  );
}

export const choicesOf = (values: readonly string[]): readonly Choice[] =>
  values.map((value) => ({ value, label: value.replaceAll("_", " ") }));
