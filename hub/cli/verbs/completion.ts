import { Argument, type Command } from "commander";
import type { Run } from "../program/run.ts";
import { bashCompletion } from "../shell/bash.ts";
import { fishCompletion } from "../shell/fish.ts";
import { treeOf } from "../shell/tree.ts";
import { zshCompletion } from "../shell/zsh.ts";
import { shippedOperations } from "../table/shipped.ts";

const SHELLS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;
type Shell = keyof typeof SHELLS;

const HELP = `
bash:  muster completion bash > ~/.local/share/bash-completion/completions/muster
zsh:   muster completion zsh > a folder of $fpath/_muster
fish:  muster completion fish > ~/.config/fish/completions/muster.fish
The Debian package brings all three.
`;

export function add(completion: Command, run: Run): void {
  completion
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SHELLS)))
    .addHelpText("after", HELP)
    .action(async (shell: Shell) => {
      const tree = treeOf(await run.whole());
      run.io.out(
        SHELLS[shell](
          tree,
          shippedOperations().map(({ command }) => command),
        ),
      );
    });
}
