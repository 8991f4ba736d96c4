import { Modal, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, type ReactNode, useState } from "react";
import { api, read } from "../api/client.ts";
import { question } from "../api/query-client.ts";
import { useMay } from "../api/session.ts";
import { Icon } from "../look/icons.tsx";
import { StatusBadge } from "../parts/status-badge.tsx";
import classes from "./frame.module.css";
import type { Screen } from "./screen.ts";
import { SCREENS } from "./screens.ts";

const ALL: readonly Screen[] = SCREENS;
const MOST_HOSTS = 8;

interface Result {
  readonly key: string;
  readonly title: string;
  readonly kind: ReactNode;
  open(): void;
}

const hostsLike = (search: string) =>
  question(["nodes"], ["palette", search], (signal) =>
    read(api.GET("/api/v1/admin/nodes", { params: { query: { search, limit: MOST_HOSTS } }, signal })),
  );

function useResults(typed: string): readonly Result[] {
  const may = useMay();
  const navigate = useNavigate();
  const [search] = useDebouncedValue(typed.trim(), 200);
  const hosts = useQuery({ ...hostsLike(search), enabled: search.length > 1 && may("read_nodes") });
  const screens = ALL.filter(
    ({ title, group, right }) =>
      group !== undefined && may(right) && title.toLowerCase().includes(typed.trim().toLowerCase()),
  );
  const found = search.length > 1 ? (hosts.data?.items ?? []) : [];
  return [
    ...screens.map(({ title, route }) => ({
      key: `screen-${route.path}`,
      title,
      kind: "screen",
      open: () => void navigate({ to: route.path as "/" }),
    })),
    ...found.map(({ id, hostname, status }) => ({
      key: `node-${id}`,
      title: hostname,
      kind: <StatusBadge status={status} />,
      open: () => void navigate({ to: "/nodes/$id", params: { id } }),
    })),
  ];
}

/** Jumps to a screen or a host by some letters of its name. */
export const Palette = ({ opened, onClose }: { readonly opened: boolean; readonly onClose: () => void }): ReactNode => (
  <Modal opened={opened} onClose={onClose} title="Find a host or a screen" closeButtonProps={{ "aria-label": "Close" }}>
    {opened ? <PaletteBody onClose={onClose} /> : null}
  </Modal>
);

function PaletteBody({ onClose }: { readonly onClose: () => void }): ReactNode {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const results = useResults(typed);
  const chosen = Math.min(at, results.length - 1);
  const open = (result: Result | undefined): void => {
    if (result === undefined) return;
    onClose();
    result.open();
  };
  const press = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setAt(Math.max(0, Math.min(results.length - 1, chosen + step)));
    }
    if (event.key === "Enter") open(results[chosen]);
  };
  return (
    <>
      <TextInput
        data-autofocus
        aria-label="Host or screen"
        placeholder="hostname, address, MAC, serial number, or a screen"
        leftSection={<Icon name="find" size={14} />}
        value={typed}
        onChange={(event) => {
          setTyped(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={press}
        role="combobox"
        aria-expanded={results.length > 0}
        aria-controls="palette-results"
        aria-activedescendant={results[chosen] === undefined ? undefined : `palette-${results[chosen].key}`}
      />
      <div id="palette-results" role="listbox" aria-label="Found" className={classes.results}>
        {results.map((result, index) => (
          // The keyboard works in the text field, which names the chosen result.
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above handles the keys
          <div
            key={result.key}
            id={`palette-${result.key}`}
            role="option"
            aria-selected={index === chosen}
            tabIndex={-1}
            className={classes.result}
            onClick={() => open(result)}
          >
            <span>{result.title}</span>
            <span className={classes.resultKind}>{result.kind}</span>
          </div>
        ))}
      </div>
      {results.length === 0 ? <p role="status">Nothing has this name.</p> : null}
    </>
  );
}
