import { type Branch, type Place, placesOf } from "./tree.ts";

const quoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

function linesOf({ path, branch }: Place): string[] {
  const when = `-n ${quoted(`test (__muster_path) = ${JSON.stringify(path.join(" "))}`)}`;
  const commands = branch.branches.flatMap(({ name, aliases, about }) =>
    [name, ...aliases].map((word) => `complete -c muster ${when} -a ${word} -d ${quoted(about)}`),
  );
  const flags = branch.flags.map(({ names, about, takesValue, choices }) => {
    const spellings = names
      .map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`))
      .join(" ");
    const value = choices.length > 0 ? ` -x -a ${quoted(choices.join(" "))}` : takesValue ? " -r" : "";
    return `complete -c muster ${when} ${spellings}${value} -d ${quoted(about)}`;
  });
  return [...commands, ...flags];
}

/** A `case` of the fish completion script that finds the command for the words before the cursor; the alias of a command leads to the command itself. */
const stepsOf = ({ path, branch }: Place): string[] =>
  branch.branches.map(({ name, aliases }) => {
    const spellings = [name, ...aliases].map((word) => quoted([...path, word].join(" "))).join(" ");
    return `      case ${spellings}\n        set path ${quoted([...path, name].join(" "))}`;
  });

/** Returns a completion script for fish, which needs no hub and starts no program. */
export function fishCompletion(tree: Branch, operations: readonly string[]): string {
  const places = placesOf(tree);
  return `# Completion of muster for fish; written by: muster completion fish
function __muster_path
  set -l path ''
  for word in (commandline -opc)[2..-1]
    string match -q -- '-*' $word; and continue
    set -l next (string trim -- "$path $word")
    switch $next
${places.flatMap(stepsOf).join("\n")}
    end
  end
  echo $path
end
complete -c muster -f
${places.flatMap(linesOf).join("\n")}
complete -c muster -n 'test (__muster_path) = "" && string match -q -- "*-*" (commandline -ct)' -a ${quoted(operations.join(" "))}
`;
}
