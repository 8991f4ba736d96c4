import { Button, CloseButton, Switch, TextInput } from "@mantine/core";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useSiteName } from "../../api/sites.ts";
import { Icon } from "../../look/icons.tsx";
import { FilterRow } from "../../parts/filters.tsx";
import { words } from "../../parts/tones.ts";
import { FacetMenu } from "./facet-menu.tsx";
import type { FacetName, Facets, NodesSearch } from "./node-questions.ts";
import classes from "./nodes.module.css";

const TYPING_MS = 250;

/** The filters of the list of nodes, in the order of the filter bar. The API accepts several values of some filters, and one value of the others. */
const FACETS: readonly { readonly name: FacetName; readonly title: string; readonly several: boolean }[] = [
  { name: "status", title: "Status", several: true },
  { name: "schedulable", title: "Schedulable", several: false },
  { name: "site_id", title: "Site", several: false },
  { name: "sku_id", title: "SKU", several: true },
  { name: "room", title: "Room", several: false },
  { name: "rack", title: "Rack", several: false },
  { name: "failure_class", title: "Failure", several: true },
  { name: "condition", title: "Condition", several: false },
];

const SCHEDULABLE: Readonly<Record<string, string>> = { true: "yes", false: "no" };

interface Props {
  readonly search: NodesSearch;
  readonly facets: Facets | undefined;
  readonly onChange: (changes: Partial<NodesSearch>) => void;
}

/** The filters of the list. Each change of a filter changes the URL. */
export function FilterBar({ search, facets, onChange }: Props): ReactNode {
  const siteName = useSiteName();
  const nameOf = (name: FacetName, value: string): string => {
    if (name === "site_id") return siteName(value);
    if (name === "schedulable") return SCHEDULABLE[value] ?? value;
    return name === "status" || name === "failure_class" ? words(value) : value;
  };
  return (
    <FilterRow>
      <SearchField
        value={search.search ?? ""}
        onChange={(text) => onChange({ search: text === "" ? undefined : text })}
      />
      {FACETS.map(({ name, title, several }) => {
        const given = search[name];
        return (
          <FacetMenu
            key={name}
            title={title}
            several={several}
            values={facets?.facets[name].values ?? []}
            more={facets?.facets[name].more ?? 0}
            chosen={given === undefined ? [] : typeof given === "string" ? [given] : given}
            nameOf={(value) => nameOf(name, value)}
            onChange={(chosen) => onChange({ [name]: chosen.length === 0 ? undefined : several ? chosen : chosen[0] })}
          />
        );
      })}
      <Switch
        label="Deleted"
        checked={search.include_deleted === "true"}
        onChange={(event) => onChange({ include_deleted: event.currentTarget.checked ? "true" : undefined })}
      />
      {hasFilter(search) ? (
        <Button variant="subtle" onClick={() => onChange(NO_FILTER)}>
          Clear all
        </Button>
      ) : null}
    </FilterRow>
  );
}

const NO_FILTER = {
  search: undefined,
  status: undefined,
  schedulable: undefined,
  site_id: undefined,
  sku_id: undefined,
  room: undefined,
  rack: undefined,
  failure_class: undefined,
  condition: undefined,
  health_override: undefined,
  address: undefined,
  hostname_prefix: undefined,
  include_deleted: undefined,
  no_room: undefined,
} as const satisfies Partial<NodesSearch>;

export const hasFilter = (search: NodesSearch): boolean =>
  Object.keys(NO_FILTER).some((name) => search[name as keyof NodesSearch] !== undefined);

/** The typed search text goes into the URL after a short pause, so that a whole word causes one request only. */
function SearchField({
  value,
  onChange,
}: {
  readonly value: string;
  readonly onChange: (text: string) => void;
}): ReactNode {
  const [typed, setTyped] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const sent = useRef(value);
  useEffect(() => {
    // A link or the browser's Back button has changed the URL.
    if (value !== sent.current) setTyped(value);
    sent.current = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const send = (text: string): void => {
    clearTimeout(timer.current);
    sent.current = text.trim();
    onChange(text.trim());
  };
  const type = (text: string): void => {
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => send(text), TYPING_MS);
  };
  return (
    <TextInput
      className={classes.search}
      aria-label="Search nodes"
      placeholder="Hostname, address, MAC, serial number, MAAS id"
      data-find
      leftSection={<Icon name="find" size={14} />}
      rightSection={
        typed === "" ? null : <CloseButton size="sm" aria-label="Clear the search" onClick={() => type("")} />
      }
      value={typed}
      onChange={(event) => type(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter") send(typed);
      }}
      spellCheck={false}
      autoComplete="off"
    />
  );
}
