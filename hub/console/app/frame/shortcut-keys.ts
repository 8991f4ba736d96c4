/** What a key means. `go` waits for the second key of a pair, and the first key is forgotten after `PAIR_MS`. */
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
  /** True if the key goes into a text field. */
  readonly typing: boolean;
}

export const PAIR_MS = 1_200;
const NONE = { kind: "none" } as const;

/**
 * Decides what a pressed key means. `afterG` says whether the key before was `g`, and `single` whether the person has shortcuts of single characters
 * switched on (WCAG 2.1.4). The palette opens by Ctrl+K in any case.
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
