import { type Branch, type Place, placesOf } from "./tree.ts";

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const keyOf = (path: readonly string[]): string => path.join(" ");

/** The words that may follow a command: its sub-commands with their short forms, and its flags. */
const wordsOf = ({ branch }: Place): string =>
  [
    ...branch.branches.flatMap(({ name, aliases }) => [name, ...aliases]),
    ...branch.flags.flatMap(({ names }) => names),
  ].join(" ");

/** The lines of the bash completion script that find the command for the words before the cursor. The alias of a command leads to the command itself. */
const stepsOf = ({ path, branch }: Place): string[] =>
  branch.branches.map(({ name, aliases }) => {
    const spellings = [name, ...aliases].map((word) => quoted(keyOf([...path, word]))).join("|");
    return `      ${spellings}) path=${quoted(keyOf([...path, name]))} ;;`;
  });

const choicesOf = ({ path, branch }: Place): string[] =>
  branch.flags.flatMap(({ names, choices }) =>
    choices.length === 0
      ? []
      : [`    ${names.map((name) => quoted(keyOf([...path, name]))).join("|")}) words=${quoted(choices.join(" "))} ;;`],
  );

const valuesOf = (places: readonly Place[]): string => {
  const flags = places.flatMap(({ branch }) =>
    branch.flags.filter(({ takesValue }) => takesValue).flatMap(({ names }) => names),
  );
  return [...new Set(flags)].join("|");
};

/** Returns a completion script for bash, which needs no hub and starts no program. */
export function bashCompletion(tree: Branch, operations: readonly string[]): string {
  const places = placesOf(tree);
  return `# Completion of muster for bash; written by: muster completion bash
_muster() {
  local word words path= i skip=
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ -n $skip ]]; then skip=; continue; fi
    case $word in
      ${valuesOf(places)}) skip=1; continue ;;
      -*) continue ;;
    esac
    case "\${path:+$path }$word" in
${places.flatMap(stepsOf).join("\n")}
    esac
  done
  case "\${path:+$path }$previous" in
${places.flatMap(choicesOf).join("\n")}
    *)
      if [[ -n $skip ]]; then
        case $previous in
          *-file) COMPREPLY=($(compgen -f -- "$current")) ;;
        esac
        return
      fi
      case $path in
${places.map((place) => `        ${quoted(keyOf(place.path))}) words=${quoted(wordsOf(place))} ;;`).join("\n")}
      esac
      # The commands of the API's operations all have a dash, and are too many to show before the first one.
      if [[ -z $path && $current == *-* ]]; then words+=${quoted(` ${operations.join(" ")}`)}; fi
      ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _muster muster
`;
}
