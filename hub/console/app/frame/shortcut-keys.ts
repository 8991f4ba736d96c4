/**
 * What a key means. `wait` means that the first key of a two-key shortcut was pressed, and `go` that its second key was; the first key is forgotten
 * after `PAIR_MS`.
 */
export type KeyMeaning =
  | { readonly kind: "none" }
  | { readonly kind: "wait" }
  | { readonly kind: "find" }
  | { readonly kind: "list" }
  | { readonly kind: "palette" }
  | { readonly kind: "go"; readonly key: string };

export interface Pressed {
  readonly key: string;
  readonly ctrl: boolean;
  readonly alt: boolean;
  readonly meta: boolean;
  /** True if the key is typed into a text field. */
  readonly typing: boolean;
}

export const PAIR_MS = 1_200;
const NONE = { kind: "none" } as const;

/**
 * Decides what a pressed key means. `afterG` says whether the previous key was `g`, and `single` whether the person has single-character shortcuts
 * switched on (WCAG 2.1.4). Ctrl+K opens the command palette even if single-character shortcuts are off.
 */
export function meaningOf(pressed: Pressed, { afterG, single }: { afterG: boolean; single: boolean }): KeyMeaning {
  const { key, ctrl, alt, meta, typing } = pressed;
  if ((ctrl || meta) && !alt && key.toLowerCase() === "k") return { kind: "palette" };
  if (ctrl || alt || meta || typing || !single) return NONE;
  if (afterG) return /^[a-z]$/.test(key) ? { kind: "go", key } : NONE;
  if (key === "g") return { kind: "wait" };
  if (key === "/") return { kind: "find" };
  return key === "?" ? { kind: "list" } : NONE;
}
