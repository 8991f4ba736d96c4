import { STATUS } from "../statuses.ts";
import { type Branch, type Place, placesOf } from "./tree.ts";

/** In roff a backslash begins a command, a dot or apostrophe at the begin of a line too, and a plain minus is a hyphen. */
const roff = (text: string): string =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^([.'])/gm, "\\&$1");

const MEANINGS: Readonly<Record<keyof typeof STATUS, string>> = {
  done: "The command did what it was asked to do.",
  failed: "The hub or the command failed, or an object can no longer reach the state of wait.",
  usage: "The command line was not understood, or several objects have the name.",
  unreachable: "The hub could not be reached.",
  notAllowed: "The caller is not known or may not do this.",
  notFound: "No object has the name or id.",
  refused: "The hub refused the request because of the state of the object.",
  deadline: "The deadline passed, and the work goes on.",
  partly: "A part of the work was done.",
  interrupted: "Ctrl-C ended the command.",
};

function commandText({ path, branch }: Place): string {
  const flags = branch.flags
    .filter(({ names }) => !names.includes("--help"))
    .map(({ text, about }) => `.TP\n\\fB${roff(text)}\\fR\n${roff(about) || "\\&"}\n`);
  const aliases = branch.aliases.length === 0 ? "" : `Also: ${branch.aliases.map(roff).join(", ")}.\n`;
  return `.SS "muster ${roff(path.join(" "))}"\n${roff(branch.about)}.\n${aliases}.PP\n\\fB${roff(branch.usage)}\\fR\n${flags.join("")}`;
}

/** The man page of the program, from the tree of its commands. */
export function manPage(tree: Branch, version: string): string {
  const places = placesOf(tree).filter(({ path }) => path.length > 0);
  const statuses = Object.entries(MEANINGS).map(
    ([name, text]) => `.TP\n.B ${STATUS[name as keyof typeof STATUS]}\n${roff(text)}\n`,
  );
  return `.TH MUSTER 1 "" "muster ${roff(version)}" "Muster"
.SH NAME
muster \\- command line of the Muster hub
.SH SYNOPSIS
.B muster
.I command
[\\fIarguments\\fR] [\\fIflags\\fR]
.SH DESCRIPTION
${roff(tree.about || "Muster brings bare-metal GPU hosts into service, keeps them there and takes them out again.")}
.SH COMMANDS
${places.map(commandText).join("")}.SH EXIT STATUS
${statuses.join("")}.SH ENVIRONMENT
.TP
.B MUSTER_URL, MUSTER_CONTEXT
name the hub.
.TP
.B MUSTER_TOKEN_FILE, MUSTER_TOKEN
give the API token.
.TP
.B MUSTER_CA_FILE
is the CA of the hub's https certificate.
.TP
.B NO_COLOR
switches colours off.
.SH FILES
.TP
.I ~/.config/muster/contexts.json
holds the contexts.
.TP
.I ~/.local/state/muster/credentials.json
holds the logins.
`;
}
