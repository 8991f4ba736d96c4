import { Button, MultiSelect, Pill, Select, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { useSites } from "../../api/sites.ts";
import { Icon } from "../../look/icons.tsx";
import { FilterRow } from "../../parts/filters.tsx";
import { words } from "../../parts/tones.ts";
import { hasFilter, isPreset, type OperationsSearch, PRESETS } from "./operation-list.ts";
import classes from "./operations.module.css";
import { FAILURES, KINDS, STATUSES } from "./route.ts";

interface Props {
  readonly search: OperationsSearch;
  readonly onChange: (changes: Partial<OperationsSearch>) => void;
  readonly onPreset: (search: OperationsSearch) => void;
}

const choices = (values: readonly string[]) => values.map((value) => ({ value, label: words(value) }));
const orNone = <Value extends string>(values: readonly string[]): Value[] | undefined =>
  values.length === 0 ? undefined : (values as Value[]);

/** The filters of the list. Each change of a filter changes the URL. */
export function OperationFilters({ search, onChange, onPreset }: Props): ReactNode {
  const sites = useSites();
  return (
    <FilterRow>
      {PRESETS.map(({ title, search: preset }) => (
        <Button
          key={title}
          variant={isPreset(search, preset) ? "light" : "default"}
          aria-pressed={isPreset(search, preset)}
          onClick={() => onPreset(preset)}
        >
          {title}
        </Button>
      ))}
      <Typed
        key={`host ${search.hostname_prefix}`}
        label="Beginning of the hostname"
        find
        value={search.hostname_prefix ?? ""}
        onChange={(text) => onChange({ hostname_prefix: text === "" ? undefined : text })}
      />
      <Several label="Kind" values={KINDS} chosen={search.kind} onChange={(kind) => onChange({ kind: orNone(kind) })} />
      <Several
        label="Status"
        values={STATUSES}
        chosen={search.status}
        onChange={(status) => onChange({ status: orNone(status) })}
      />
      <Several
        label="Failure"
        values={FAILURES}
        chosen={search.failure_class}
        onChange={(failure) => onChange({ failure_class: orNone(failure) })}
      />
      <Select
        aria-label="Site"
        placeholder="Site"
        clearable
        data={[...sites.values()].map(({ id, name }) => ({ value: id, label: name }))}
        value={search.site_id ?? null}
        onChange={(id) => onChange({ site_id: id ?? undefined })}
      />
      <Typed
        key={`by ${search.requested_by}`}
        label="Requested by"
        value={search.requested_by ?? ""}
        onChange={(text) => onChange({ requested_by: text === "" ? undefined : text })}
      />
      <Chosen search={search} onChange={onChange} />
      {hasFilter(search) ? (
        <Button variant="subtle" onClick={() => onPreset({})}>
          Clear all
        </Button>
      ) : null}
    </FilterRow>
  );
}

const Several = ({
  label,
  values,
  chosen,
  onChange,
}: {
  readonly label: string;
  readonly values: readonly string[];
  readonly chosen: readonly string[] | undefined;
  readonly onChange: (values: string[]) => void;
}): ReactNode => (
  <MultiSelect
    className={classes.several}
    aria-label={label}
    placeholder={chosen === undefined ? label : ""}
    data={choices(values)}
    value={[...(chosen ?? [])]}
    onChange={onChange}
  />
);

/** A typed filter value takes effect when the person presses Enter or leaves the field. */
function Typed({
  label,
  value,
  find = false,
  onChange,
}: {
  readonly label: string;
  readonly value: string;
  readonly find?: boolean;
  readonly onChange: (text: string) => void;
}): ReactNode {
  const [typed, setTyped] = useState(value);
  const send = (): void => {
    if (typed.trim() !== value) onChange(typed.trim());
  };
  return (
    <TextInput
      aria-label={label}
      placeholder={label}
      leftSection={find ? <Icon name="find" size={14} /> : null}
      {...(find ? { "data-find": true } : {})}
      value={typed}
      spellCheck={false}
      autoComplete="off"
      onChange={(event) => setTyped(event.currentTarget.value)}
      onBlur={send}
      onKeyDown={(event) => {
        if (event.key === "Enter") send();
      }}
    />
  );
}

/** Filters that no field of the screen but only a link sets, for example the filter for one batch. A person can take them back. */
const Chosen = ({ search, onChange }: Pick<Props, "search" | "onChange">): ReactNode =>
  (["node_id", "batch_id", "slow"] as const).map((name) =>
    search[name] === undefined ? null : (
      <Pill
        key={name}
        withRemoveButton
        removeButtonProps={{ "aria-label": `Take back ${words(name)}`, "aria-hidden": false, tabIndex: 0 }}
        onRemove={() => onChange({ [name]: undefined })}
      >
        {words(name.replace("_id", ""))}: {name === "slow" ? search[name] : search[name]?.slice(0, 8)}
      </Pill>
    ),
  );
