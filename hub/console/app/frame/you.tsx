import { type MantineColorScheme, Menu, UnstyledButton, useMantineColorScheme } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { signOut, useHub } from "../api/session.ts";
import { useLive } from "../live/live.tsx";
import { Icon } from "../look/icons.tsx";
import classes from "./frame.module.css";
import { notify } from "./notice-list.ts";
import { showShortcuts } from "./shortcut-settings.ts";

const SCHEMES = [
  ["auto", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
] as const;

const LIVE = { connecting: "connecting", live: "live", away: "hub away", refused: "not live" } as const;

/** The menu that names the signed-in person, says whether the console receives the hub's events, and holds the person's settings. */
export function You(): ReactNode {
  const { you, version } = useHub();
  const { standing } = useLive();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const leaving = useMutation({
    mutationFn: signOut,
    onError: (error) => notify({ tone: "bad", text: error.message }),
  });
  return (
    <div className={classes.you}>
      <span className={classes.live} title={`hub ${version}`}>
        <span className={classes.liveDot} data-live={standing.kind === "live"} />
        <span className={classes.liveText}>{LIVE[standing.kind]}</span>
      </span>
      <Menu position="bottom-end" width={230} withinPortal={false}>
        <Menu.Target>
          <UnstyledButton className={classes.live} aria-label={`Menu of ${you.name}`}>
            <Icon name="person" />
            <span className={classes.youName}>{you.name}</span>
            <Icon name="chevron" size={12} />
          </UnstyledButton>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>
            {you.name}, role {you.role}
          </Menu.Label>
          <Menu.Label>Colours</Menu.Label>
          <Menu.RadioGroup value={colorScheme} onChange={(scheme) => setColorScheme(scheme as MantineColorScheme)}>
            {SCHEMES.map(([scheme, title]) => (
              <Menu.RadioItem key={scheme} value={scheme}>
                {title}
              </Menu.RadioItem>
            ))}
          </Menu.RadioGroup>
          <Menu.Divider />
          <Menu.Item onClick={showShortcuts}>Keyboard shortcuts</Menu.Item>
          <Menu.Item component="a" href="/docs">
            API
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item onClick={() => leaving.mutate(false)}>Sign out</Menu.Item>
          <Menu.Item onClick={() => leaving.mutate(true)}>Sign out everywhere</Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </div>
  );
}
