import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from "@mantine/core";

/** The shades of the console's brand colour, from light to dark. White text is readable on the shades 6 to 9 of the brand colour. */
const BRAND: MantineColorsTuple = [
  "#eef4fc",
  "#d6e4f7",
  "#adc8ee",
  "#8fb6ea",
  "#6b9fe3",
  "#3f7bd0",
  "#2a66bb",
  "#2158a5",
  "#1d4f91",
  "#153a6c",
];
/** The greys of the dark colour scheme: first the text's, then those of borders, surfaces and the page. */
const DARK: MantineColorsTuple = [
  "#e4e8ee",
  "#c3cad4",
  "#a9b2bf",
  "#7b8594",
  "#3d4552",
  "#2f3641",
  "#232932",
  "#16191f",
  "#111318",
  "#0c0e11",
];

const SYSTEM_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif";
/** Mantine renders the head of a dialog as a header element, which a screen reader would announce as a second banner of the document. */
const plainHead = { attributes: { header: { role: "presentation" } } };
const small = { defaultProps: { size: "xs" } };

/**
 * The console uses one small, dense scale of font sizes and the fonts of the operator's system, because a hub at a closed site loads nothing from
 * elsewhere.
 */
export const theme = createTheme({
  primaryColor: "brand",
  primaryShade: { light: 7, dark: 6 },
  colors: { brand: BRAND, dark: DARK },
  fontFamily: SYSTEM_FONT,
  fontFamilyMonospace: "ui-monospace, 'SFMono-Regular', 'Cascadia Mono', 'Liberation Mono', monospace",
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "20px" },
  lineHeights: { xs: "1.35", sm: "1.4", md: "1.45", lg: "1.4", xl: "1.3" },
  spacing: { xs: "6px", sm: "10px", md: "14px", lg: "20px", xl: "28px" },
  defaultRadius: 4,
  headings: {
    fontFamily: SYSTEM_FONT,
    fontWeight: "600",
    sizes: {
      h1: { fontSize: "20px", lineHeight: "1.3" },
      h2: { fontSize: "15px", lineHeight: "1.4" },
      h3: { fontSize: "14px", lineHeight: "1.4" },
    },
  },
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    ActionIcon: { defaultProps: { size: "md", variant: "subtle", color: "gray" } },
    Button: { ...small, styles: { label: { fontWeight: 500 } } },
    Checkbox: small,
    Input: small,
    InputWrapper: small,
    MultiSelect: small,
    NativeSelect: small,
    NumberInput: small,
    PasswordInput: small,
    SegmentedControl: small,
    Select: small,
    Switch: small,
    TextInput: small,
    Textarea: small,
    Modal: {
      defaultProps: {
        ...plainHead,
        centered: false,
        transitionProps: { duration: 0 },
        overlayProps: { backgroundOpacity: 0.45 },
      },
    },
    Drawer: { defaultProps: { ...plainHead, transitionProps: { duration: 0 } } },
    Menu: { defaultProps: { withInitialFocusPlaceholder: false, transitionProps: { duration: 0 }, shadow: "md" } },
    Popover: { defaultProps: { transitionProps: { duration: 0 }, shadow: "md" } },
    Tooltip: { defaultProps: { transitionProps: { duration: 0 }, openDelay: 300, multiline: true, maw: 360 } },
  },
});

const RED = { "--mantine-color-red-filled": "#c92a2a", "--mantine-color-red-filled-hover": "#b02525" } as const;
/** Mantine's own greys for secondary text, and its red for buttons whose action cannot be undone, have less contrast than WCAG AA requires. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    ...RED,
    "--mantine-color-text": "#1a2029",
    "--mantine-color-dimmed": "#525c69",
    "--mantine-color-placeholder": "#616b78",
    "--mantine-color-error": "#9b1c1c",
    "--mantine-color-anchor": "#1d4f91",
  },
  dark: {
    ...RED,
    "--mantine-color-dimmed": "#a9b2bf",
    "--mantine-color-placeholder": "#949eac",
    "--mantine-color-error": "#ff9d94",
    "--mantine-color-anchor": "#8fb6ea",
  },
});
