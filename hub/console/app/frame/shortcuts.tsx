import { Kbd, Modal, Switch } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { useMay } from "../api/session.ts";
import classes from "./frame.module.css";
import type { Screen } from "./screen.ts";
import { SCREENS } from "./screens.ts";
import { meaningOf, PAIR_MS, type Pressed } from "./shortcut-keys.ts";
import {
  areOn,
  hideShortcuts,
  showShortcuts,
  switchTo,
  useShortcutsOn,
  useShortcutsShown,
} from "./shortcut-settings.ts";

const ALL: readonly Screen[] = SCREENS;
const WRITES = "input, textarea, select, [contenteditable=true]";

const pressedOf = (event: KeyboardEvent): Pressed => ({
  key: event.key,
  ctrl: event.ctrlKey,
  alt: event.altKey,
  meta: event.metaKey,
  typing: event.target instanceof Element && event.target.closest(WRITES) !== null,
});

/** Puts the cursor into the screen's search field, which has the attribute `data-find`. */
const focusFind = (): void => document.querySelector<HTMLElement>("[data-find]")?.focus();

function useShortcuts(openPalette: () => void): void {
  const navigate = useNavigate();
  useEffect(() => {
    let gAt = Number.NEGATIVE_INFINITY;
    const press = (event: KeyboardEvent): void => {
      const dialog = document.querySelector("[role=dialog]") !== null;
      const afterG = performance.now() - gAt < PAIR_MS;
      const meaning = meaningOf(pressedOf(event), { afterG, single: areOn() && !dialog });
      gAt = Number.NEGATIVE_INFINITY;
      if (meaning.kind === "none") return;
      event.preventDefault();
      if (meaning.kind === "wait") gAt = performance.now();
      else if (meaning.kind === "palette") openPalette();
      else if (meaning.kind === "find") focusFind();
      else if (meaning.kind === "list") showShortcuts();
      else {
        const screen = ALL.find(({ key }) => key === meaning.key);
        if (screen !== undefined) void navigate({ to: screen.route.path as "/" });
      }
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [navigate, openPalette]);
}

/** The keyboard shortcuts of the console, and the list of them that the key `?` opens. */
export function Shortcuts({ openPalette }: { readonly openPalette: () => void }): ReactNode {
  useShortcuts(openPalette);
  const shown = useShortcutsShown();
  const on = useShortcutsOn();
  const may = useMay();
  const keyed = ALL.filter(({ key, right }) => key !== undefined && may(right));
  return (
    <Modal
      opened={shown}
      onClose={hideShortcuts}
      title="Keyboard shortcuts"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <dl className={classes.keys}>
        <dt>
          <Kbd>Ctrl</Kbd> <Kbd>K</Kbd>
        </dt>
        <dd>Find a host or a screen</dd>
        <dt>
          <Kbd>/</Kbd>
        </dt>
        <dd>Search on this screen</dd>
        <dt>
          <Kbd>?</Kbd>
        </dt>
        <dd>This list</dd>
        {keyed.map(({ key, title }) => [
          <dt key={`${key}-key`}>
            <Kbd>g</Kbd> <Kbd>{key}</Kbd>
          </dt>,
          <dd key={key}>{title}</dd>,
        ])}
      </dl>
      <Switch
        label="Shortcuts of single characters"
        description="Ctrl K works in any case."
        checked={on}
        onChange={(event) => switchTo(event.currentTarget.checked)}
      />
    </Modal>
  );
}
