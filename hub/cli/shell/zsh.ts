import { bashCompletion } from "./bash.ts";
import type { Branch } from "./tree.ts";

/** zsh runs a completion script for bash by its module `bashcompinit`. */
export const zshCompletion = (tree: Branch, operations: readonly string[]): string => `#compdef muster
# Completion of muster for zsh; written by: muster completion zsh
autoload -U +X bashcompinit && bashcompinit
${bashCompletion(tree, operations).split("\n").slice(1).join("\n")}`;
