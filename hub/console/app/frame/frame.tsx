import { ActionIcon, Drawer } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";
import { Icon } from "../look/icons.tsx";
import { AskedApprovals } from "../verbs/asked-approvals.tsx";
import { Dialogs } from "../verbs/dialogs.tsx";
import { HubBanners } from "./banners.tsx";
import { Mark } from "./brand.tsx";
import classes from "./frame.module.css";
import { Navigation } from "./navigation.tsx";
import { Notices } from "./notices.tsx";
import { Palette } from "./palette.tsx";
import { Shortcuts } from "./shortcuts.tsx";
import { You } from "./you.tsx";

/** What every screen has around it: the navigation, the search, the person's menu, and the banners about the hub. */
export function Frame(): ReactNode {
  const [menu, { open, close }] = useDisclosure(false);
  const [palette, paletteIs] = useDisclosure(false);
  const { pathname } = useLocation();
  const main = useRef<HTMLElement>(null);
  const shown = useRef(pathname);
  useEffect(() => {
    if (shown.current === pathname) return;
    shown.current = pathname;
    close();
    // A screen reader learns of the new screen by the focus, as it would learn of a new document.
    main.current?.focus({ preventScroll: true });
  }, [pathname, close]);
  return (
    <div className={classes.frame}>
      <a className={classes.skip} href="#main">
        Skip to the content
      </a>
      <header className={classes.top}>
        <ActionIcon className={classes.menuButton} aria-label="Open the navigation" onClick={open}>
          <Icon name="menu" />
        </ActionIcon>
        <Link to="/" className={classes.brand}>
          <Mark /> Muster
        </Link>
        <button type="button" className={classes.find} onClick={paletteIs.open}>
          <Icon name="find" size={14} />
          <span className={classes.findText}>Find a host or a screen</span>
          <kbd className={classes.key}>Ctrl K</kbd>
        </button>
        <You />
      </header>
      <nav className={classes.side} aria-label="Screens">
        <Navigation />
      </nav>
      <Drawer opened={menu} onClose={close} title="Screens" size="xs" closeButtonProps={{ "aria-label": "Close" }}>
        <nav aria-label="Screens">
          <Navigation />
        </nav>
      </Drawer>
      <main id="main" className={classes.main} tabIndex={-1} ref={main}>
        <HubBanners />
        <AskedApprovals />
        <Dialogs>
          <Outlet />
        </Dialogs>
      </main>
      <Palette opened={palette} onClose={paletteIs.close} />
      <Shortcuts openPalette={paletteIs.open} />
      <Notices />
    </div>
  );
}
