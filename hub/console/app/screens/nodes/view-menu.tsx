import { Button, Checkbox, CloseButton, Popover, TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useState } from "react";
import { readSearch, writeSearch } from "../../frame/search.ts";
import { Icon } from "../../look/icons.tsx";
import type { NodeColumn } from "./columns.tsx";
import type { NodesSearch } from "./node-questions.ts";
import classes from "./nodes.module.css";
import { loadViews, type SavedView, storeViews, withView } from "./saved-views.ts";

/** Saves the filter, order and columns in the URL under a name, and opens saved views. */
export function ViewMenu({ search }: { readonly search: NodesSearch }): ReactNode {
  const [views, setViews] = useState(loadViews);
  const [name, setName] = useState("");
  const navigate = useNavigate();
  const keep = (next: SavedView[]): void => {
    storeViews(next);
    setViews(next);
  };
  const save = (event: FormEvent): void => {
    event.preventDefault();
    keep(withView(views, { name, query: writeSearch(search) }));
    setName("");
  };
  return (
    <Popover position="bottom-end" width={280} trapFocus withinPortal={false}>
      <Popover.Target>
        <Button variant="default" leftSection={<Icon name="star" size={13} />}>
          Views
        </Button>
      </Popover.Target>
      <Popover.Dropdown p="xs">
        <ul className={classes.values}>
          {views.map((view) => (
            <li key={view.name} className={classes.value}>
              <Button
                variant="subtle"
                onClick={() => void navigate({ to: "/nodes", search: readSearch(view.query) as never })}
              >
                {view.name}
              </Button>
              <CloseButton
                size="sm"
                aria-label={`Delete the view ${view.name}`}
                onClick={() => keep(views.filter((one) => one.name !== view.name))}
              />
            </li>
          ))}
        </ul>
        {views.length === 0 ? <p className={classes.note}>This browser has no saved views yet.</p> : null}
        <form onSubmit={save} className={classes.saveForm}>
          <TextInput
            aria-label="Name of the view"
            placeholder="Name for this view"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Button type="submit" disabled={name.trim() === ""}>
            Save
          </Button>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}

interface ColumnProps {
  readonly all: readonly NodeColumn[];
  readonly shown: readonly NodeColumn[];
  readonly onChange: (columns: readonly string[] | undefined) => void;
}

export function ColumnMenu({ all, shown, onChange }: ColumnProps): ReactNode {
  const has = (id: string): boolean => shown.some((one) => one.id === id);
  const toggle = (id: string, on: boolean): void =>
    onChange(all.filter((one) => (one.id === id ? on : has(one.id))).map((one) => one.id));
  return (
    <Popover position="bottom-end" width={220} trapFocus withinPortal={false}>
      <Popover.Target>
        <Button variant="default" leftSection={<Icon name="columns" size={13} />}>
          Columns
        </Button>
      </Popover.Target>
      <Popover.Dropdown p="xs">
        <ul className={classes.values}>
          {all.map(({ id, head }) => (
            <li key={id} className={classes.value}>
              <Checkbox
                label={head}
                checked={has(id)}
                disabled={id === "hostname"}
                onChange={(event) => toggle(id, event.currentTarget.checked)}
              />
            </li>
          ))}
        </ul>
        <Button variant="subtle" onClick={() => onChange(undefined)}>
          The usual columns
        </Button>
      </Popover.Dropdown>
    </Popover>
  );
}
